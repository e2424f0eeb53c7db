"""Each departure once, under the names the table uses."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

IDENTITY = ["carrier", "flight", "origin", "departed_at"]


def transform(sources: dict[str, DataFrame]) -> DataFrame:
    # The event time is part of the identity on purpose. A twin then either meets its original in the
    # state, or is older than the watermark and dropped as late: exact over any number of runs.
    # dropDuplicatesWithinWatermark without the event time would also drop tomorrow's flight of the
    # same number, because its state outlives the delay until a later batch has moved the watermark.
    once = sources["departures"].dropDuplicates(IDENTITY)
    return once.select(
        "departed_at",
        "scheduled_at",
        "carrier",
        "flight",
        "tailnum",
        "origin",
        "dest",
        F.col("dep_delay").alias("dep_delay_minutes"),
        F.col("arr_delay").alias("arr_delay_minutes"),
        F.col("distance").alias("distance_miles"),
    )
