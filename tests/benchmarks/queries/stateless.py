from pyspark.sql import DataFrame

COLUMNS = "id BIGINT, k INT, at TIMESTAMP, v DOUBLE"


def transform(sources: dict[str, DataFrame]) -> DataFrame:
    return sources["events"].where("v >= 0.1").selectExpr("id", "k", "at", "v * 2 AS v")
