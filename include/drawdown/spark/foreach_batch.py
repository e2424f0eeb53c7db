"""foreachBatch with a function that is released when its query has ended.

Python keeps an object that the JVM may call until the JVM drops it, and the JVM keeps what Python refers to.
A batch function refers to sessions and frames, so with ``DataStreamWriter.foreachBatch`` each query would
keep its session, plans and state for as long as the application lives (seen with Spark 4.2.0: half a megabyte
per drain).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.utils import ForeachBatchFunction

from drawdown.spark.gateway import jvm_of


@contextmanager
def each_batch(
    writer: DataStreamWriter, function: Callable[[DataFrame, int], None]
) -> Iterator[DataStreamWriter]:
    """Yield the writer with the function set for the duration of the block; end the query inside it."""
    handed = ForeachBatchFunction(writer._spark, function)
    sources = jvm_of(writer._spark).org.apache.spark.sql.execution.streaming.sources
    sources.PythonForeachBatchHelper.callForeachBatch(writer._jwrite, handed)
    try:
        yield writer
    finally:
        vars(handed).clear()
