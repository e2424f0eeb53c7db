"""Spark's own sources for tests: socket, rate and rate-micro-batch; no schedule may use them."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from drawdown.errors import RefusedError
from drawdown.sources.spark_system_columns import options, with_system_columns
from drawdown.spec import Pipeline, Project
from drawdown.values.text import counted
from drawdown.workspace import Generation


def read_generated(session: SparkSession, project: Project, pipeline: Pipeline, name: str) -> DataFrame:
    """Return a generated stream.

    socket: value STRING (timestamp TIMESTAMP); the others: timestamp TIMESTAMP, value BIGINT.
    """
    source = pipeline.sources[name]
    return with_system_columns(session.readStream.format(source.format).options(**options(source)).load())


def refuse_second_socket(generation: Generation) -> None:
    """Refuse a second run over a socket: it counts lines from 0 when opened, so no query can continue.

    Raises:
        RefusedError: ``source.socket-again``; Spark would end the query with offsets out of order
            (TextSocketMicroBatchStream.commit), or skip lines.
    """
    pipeline, files = generation.pipeline, generation.files
    last = files.last_commit_batch()
    if generation.checkpoint is None or last is None:
        return
    offsets = dict(
        zip(generation.fingerprint.get("source_order", ()), files.offsets(last).offsets, strict=False)
    )
    for name, source in pipeline.sources.items():
        offset = offsets.get(name)
        if source.format == "socket" and isinstance(offset, int) and offset >= 0:
            raise RefusedError(
                "source.socket-again",
                f"{pipeline.name} has read {counted(offset + 1, 'line')} of the socket {name}, but a socket"
                " cannot be read again from a checkpoint: it is not fault tolerant",
                where=str(pipeline.folder / "pipeline.yaml"),
                do="make a pipeline of another name and sink for each trial, or land the lines as text files",
            )
