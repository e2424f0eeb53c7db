"""A transform whose rows take their time, so that a signal comes in the middle of a drain."""

from __future__ import annotations

from pathlib import Path


def slow_transform(source: str, column: str, kind: str, seconds: float | Path, then: str = "") -> str:
    """transform.py: the source as it is, each value of a column so late; `then` is called on the frame.

    Args:
        seconds: or a file that says how many.
    """
    said = f"float(open({str(seconds)!r}).read())" if isinstance(seconds, Path) else seconds
    return f"""
import time
from pyspark.sql.functions import udf

@udf("{kind}")
def slowly(value):
    time.sleep({said})
    return value

def transform(sources):
    return sources["{source}"].withColumn("{column}", slowly("{column}")){then}
"""
