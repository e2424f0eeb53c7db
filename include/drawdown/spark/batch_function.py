"""foreachBatch with a function that is let go of when its query has ended.

Python keeps what the JVM may call until the JVM drops it, and the JVM keeps what Python names. A batch
function names sessions and frames, so with ``DataStreamWriter.foreachBatch`` each query of an application
would keep its session, plans and state for as long as the application lives (seen with Spark 4.2.0: half
a megabyte a drain).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.utils import ForeachBatchFunction


@contextmanager
def each_batch(
    writer: DataStreamWriter, function: Callable[[DataFrame, int], None]
) -> Iterator[DataStreamWriter]:
    """The writer, with the function set for as long as the block lasts; end the query in it."""
    gateway = writer._spark.sparkContext._gateway
    assert gateway is not None
    handed = ForeachBatchFunction(writer._spark, function)
    sources = gateway.jvm.org.apache.spark.sql.execution.streaming.sources
    sources.PythonForeachBatchHelper.callForeachBatch(writer._jwrite, handed)
    try:
        yield writer
    finally:
        vars(handed).clear()
