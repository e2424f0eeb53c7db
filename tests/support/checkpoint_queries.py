"""Streaming queries whose checkpoints test_checkpoint_reading.py reads: one, late, two, named."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

SCHEMA = "k string, t timestamp"


def put(path: Path, *minutes: int) -> None:
    """Write one file with one row per minute after midnight."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"k": "a", "t": f"2024-01-01T{m // 60:02}:{m % 60:02}:00Z"} for m in minutes]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def read(spark: SparkSession, folder: Path) -> DataFrame:
    folder.mkdir(parents=True, exist_ok=True)
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))


def drain(frame: DataFrame, root: Path, name: str, counts: list[tuple[int, int]] | None = None) -> None:
    """Run a query to the end of its backlog, noting (batch, rows) for each batch."""
    seen = counts if counts is not None else []
    query = (
        frame.writeStream.foreachBatch(lambda batch, number: seen.append((number, batch.count())))
        .option("checkpointLocation", str(root / name))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def one_stateful_source(spark: SparkSession, root: Path) -> None:
    """Twelve batches with odd file names, one row a batch, then a restart with two batches."""
    folder = root / "in one"
    windows = read(spark, folder).withWatermark("t", "10 minutes").groupBy(F.window("t", "5 minutes")).count()
    put(folder / "x 1%é.json", 0)
    for number in range(1, 12):
        put(folder / f"{number:02}.json", number * 10)
    drain(windows, root, "one")
    put(folder / "_hidden.json", 0)
    put(folder / "later.json", 130)
    drain(windows, root, "one")


def late_rows(spark: SparkSession, root: Path) -> None:
    """One file a run; `late.json` says after each run how many rows Spark dropped as late, by batch."""
    folder = root / "in late"
    frame = read(spark, folder).withWatermark("t", "10 minutes").dropDuplicates(["k", "t"])
    dropped: dict[int, int] = {}
    for number, minutes in enumerate(((60,), (120, 50, 40), (200, 110, 45, 105), (190, 115, 195))):
        put(folder / f"{number}.json", *minutes)
        query = (
            frame.writeStream.format("noop")
            .option("checkpointLocation", str(root / "late"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        for progress in query.recentProgress:
            states = progress.stateOperators
            dropped[progress.batchId] = max(
                dropped.get(progress.batchId, 0), sum(s.numRowsDroppedByWatermark for s in states)
            )
    (root / "late.json").write_text(json.dumps(dropped))


def two_sources(spark: SparkSession, root: Path, name: str, names: tuple[str, str] | None) -> None:
    """The left source has a file from the start, the right one only in the second run."""
    left, right = root / f"{name} left", root / f"{name} right"
    right.mkdir(parents=True)
    put(left / "a.json", 1)

    def frame(folder: Path, source: str | None) -> DataFrame:
        reader = spark.readStream.schema(SCHEMA)
        return (reader.name(source) if source else reader).json(str(folder))

    both = frame(left, names and names[0]).union(frame(right, names and names[1]))
    drain(both, root, name)
    put(right / "b.json", 2)
    drain(both, root, name)


def write_checkpoints(spark: SparkSession, root: Path) -> None:
    """Run them all in a session of their own."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    one_stateful_source(session, root)
    late_rows(session, root)
    two_sources(session, root, "two", None)
    session.conf.set("spark.sql.streaming.queryEvolution.enableSourceEvolution", "true")
    session.conf.set("spark.sql.streaming.offsetLog.formatVersion", "2")
    two_sources(session, root, "named", ("flights", "weather"))
