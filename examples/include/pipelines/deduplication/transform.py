from pyspark.sql import DataFrame


def transform(sources: dict[str, DataFrame]) -> DataFrame:
    return sources["departures"].dropDuplicates(["carrier", "flight", "origin", "departed_at"])
