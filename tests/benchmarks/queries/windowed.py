from pyspark.sql import DataFrame
from pyspark.sql.functions import expr, window

COLUMNS = "hour TIMESTAMP, k INT, n BIGINT, v DOUBLE"


def transform(sources: dict[str, DataFrame]) -> DataFrame:
    grouped = sources["events"].groupBy(window("at", "1 hour"), "k")
    return grouped.agg(expr("count(*) AS n"), expr("sum(v) AS v")).selectExpr(
        "window.start AS hour", "k", "n", "v"
    )
