from pyspark.sql import DataFrame

COLUMNS = "id BIGINT, name STRING, at TIMESTAMP, v DOUBLE"


def transform(sources: dict[str, DataFrame]) -> DataFrame:
    return sources["events"].join(sources["names"], "k").select("id", "name", "at", "v")
