"""The same code drains and replays: sources in, one frame out."""

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.functions import pandas_udf


@pandas_udf("string")
def in_words(minutes: pd.Series) -> pd.Series:
    return minutes.map(lambda late: "early" if late < 0 else "on time" if late < 15 else "late")


def transform(sources: dict[str, DataFrame]) -> DataFrame:
    departures = sources["departures"].where("dep_delay IS NOT NULL")
    return departures.select("carrier", "flight", in_words("dep_delay").alias("delay"))
