"""A transform whose rows take their time, so that a signal comes in the middle of a drain."""

from __future__ import annotations


def slow_transform(source: str, column: str, kind: str, seconds: float, then: str = "") -> str:
    """transform.py: the source as it is, each value of a column so late; `then` is called on the frame."""
    return f"""
import time
from pyspark.sql.functions import udf

@udf("{kind}")
def slowly(value):
    time.sleep({seconds})
    return value

def transform(sources):
    return sources["{source}"].withColumn("{column}", slowly("{column}")){then}
"""
