"""console: prints each batch as Spark's console sink does. For development and tests."""

from __future__ import annotations

from pyspark.sql import DataFrame

from drawdown.sinks.batch_token import BatchToken
from drawdown.sinks.spark_delivering import DeliveringSink, executed_once

_LINE = "-" * 43


class ConsoleSink(DeliveringSink):
    """Options as Spark's: ``numRows`` (20) and ``truncate`` (true)."""

    def deliver(self, frame: DataFrame, token: BatchToken) -> None:
        options = self._pipeline.sink.options
        truncate = str(options.get("truncate", True)).lower() == "true"
        with executed_once(frame) as batch:
            print(f"{_LINE}\nBatch: {token.batch_id}\n{_LINE}")
            batch.show(int(options.get("numRows", 20)), truncate)
