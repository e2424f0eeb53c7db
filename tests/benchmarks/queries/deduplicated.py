from pyspark.sql import DataFrame

COLUMNS = "k INT, at TIMESTAMP"


def transform(sources: dict[str, DataFrame]) -> DataFrame:
    """One row a key and second: every second row is a duplicate."""
    return sources["events"].select("k", "at").dropDuplicatesWithinWatermark(["k", "at"])
