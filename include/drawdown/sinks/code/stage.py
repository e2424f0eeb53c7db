"""The user's own code as a sink: a function that gets each batch, or a class that gets each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row
from pyspark.sql.types import StructType

from drawdown.errors import TransformError
from drawdown.metastore.records import Checkpoint
from drawdown.sinks.batch_token import BatchToken
from drawdown.sinks.spark_delivering import DeliveringSink, executed_once
from drawdown.spark.sentences import spark_sentence
from drawdown.spark.user_code import RAISED, line_in, load_module


class UserSink(DeliveringSink):
    """A sink whose code stands in the file that ``function:`` names.

    Attributes:
        code_name: what the file must define; `signature` says how.
    """

    code_name: str
    signature: str

    def check(self, schema: StructType, checkpoint: Checkpoint | None) -> str | None:
        if not callable(self.code):
            raise TransformError(
                "sink.no-function",
                f"{self._file.name} of {self._pipeline.name} does not define `{self.code_name}`",
                where=str(self._file),
                do=f"define {self.signature}",
            )
        return super().check(schema, checkpoint)

    @cached_property
    def code(self) -> Any:
        """Return what the file defines under `code_name`; None when it defines nothing of that name."""
        try:
            module = load_module(f"drawdown_sink_{self._pipeline.name}", self._file)
        except RAISED as cause:
            raise self.raised(cause, "nothing was read or written") from None
        return getattr(module, self.code_name, None)

    def raised(self, cause: BaseException, then: str) -> TransformError:
        """Return an error that shows what the user's code raised, with its line."""
        said = spark_sentence(cause) if isinstance(cause, PySparkException) else str(cause)
        return TransformError(
            "sink.raised",
            f"{self._file.name} of {self._pipeline.name} raised {type(cause).__name__}: {said}",
            where=line_in(cause, self._file),
            do=f"fix it and run again: {then}",
        )

    @property
    def _file(self) -> Path:
        return self._pipeline.folder / str(self._pipeline.sink.function)


class ForeachBatchSink(UserSink):
    """``write`` gets each batch; the batch is cached during the call, so several writes compute it once."""

    code_name = "write"
    signature = "write(batch: DataFrame, token: BatchToken) -> None"

    def deliver(self, frame: DataFrame, token: BatchToken) -> None:
        with executed_once(frame) as batch:
            try:
                self.code(batch, token)
            except RAISED as cause:
                again = f"batch {token.batch_id} is repeated with the same rows and the same token"
                raise self.raised(cause, again) from None


class ForeachSink(UserSink):
    """``Writer`` gets each row, in Spark's Python workers: one object per partition and batch."""

    code_name = "Writer"
    signature = "class Writer: open(self, partition_id, epoch_id), process(self, row), close(self, error)"

    def check(self, schema: StructType, checkpoint: Checkpoint | None) -> str | None:
        target = super().check(schema, checkpoint)
        if not callable(getattr(self.code, "process", None)):
            raise TransformError(
                "sink.no-function",
                f"`Writer` of {self._pipeline.name} has no method `process`",
                where=str(self._file),
                do=f"define {self.signature}",
            )
        return target

    def deliver(self, frame: DataFrame, token: BatchToken) -> None:
        try:
            frame.foreachPartition(_each_row(self.code, token.batch_id))
        except (PySparkException, Py4JJavaError) as cause:
            if self._file.name not in str(cause):
                raise
            raise self._failed_in_a_worker(cause, token) from None

    def _failed_in_a_worker(self, cause: Exception, token: BatchToken) -> TransformError:
        from drawdown.spark.query_failures import from_spark

        again = f"batch {token.batch_id} is repeated with the same rows"
        return TransformError(
            "sink.raised",
            f"`Writer` of {self._pipeline.name} raised {from_spark(self._pipeline, cause).what}",
            where=str(self._file),
            do=f"fix it and run again: {again}",
        )


def _each_row(writer_class: Any, epoch_id: int) -> Callable[[Iterable[Row]], None]:
    """Return a function that writes one partition as Spark's foreach does (DataStreamWriter.foreach, 4.2)."""

    def partition(rows: Iterable[Row]) -> None:
        from pyspark import TaskContext

        context = TaskContext.get()
        writer = writer_class()
        wanted = (
            writer.open(context.partitionId() if context else 0, epoch_id)
            if hasattr(writer, "open")
            else True
        )
        error: Exception | None = None
        try:
            for row in rows:  # unwanted rows are read too: Spark commits state only after the last row
                if wanted:
                    writer.process(row)
        except Exception as raised:
            error = raised
            raise
        finally:
            if hasattr(writer, "close"):
                writer.close(error)

    return partition
