"""REC: a changed query is refused exactly where Spark's state would give wrong rows or an error.

Each pair runs on real state, by plain Spark and with nothing refused: the second query on what the first has
left, and on what it has left itself. What the product says is compared with what came out.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from drawdown.plan.state_fit import fits
from drawdown.query.state.kept_state import kept_state
from drawdown.spec.sink import OutputMode
from tests.conformance.state_pairs import PAIRS, Outcome, Pair, QueryText

_SCHEMA = "at TIMESTAMP, k STRING, j STRING, v BIGINT, w BIGINT, a ARRAY<STRING>, b ARRAY<STRING>"
_CONF = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    # A few rows are not worth compiled code.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# Each wave as (time, k, j, v, w, a, b). The watermark of the first ends at 11:50.
_WAVES: dict[str, dict[str, list[tuple[Any, ...]]]] = {
    "1": {
        "e": [
            ("10:00", "p", "q", 5, 50, ["p"], ["q"]),
            ("11:58", "q", "p", 7, 20, ["q", "p"], ["r"]),
            ("12:00", "p", "x", 3, 40, ["p"], ["q"]),
            ("12:00", "r", "x", 4, 10, ["r"], ["p"]),
            ("12:00", "s", "t", 6, 60, ["s"], ["t"]),
        ],
        "n": [
            ("10:00", "p", "q", 11, 500, ["p"], ["q"]),
            ("11:55", "p", "x", 12, 200, ["p"], ["q"]),
            ("11:57", "r", "q", 13, 300, ["q"], ["r"]),
            ("12:00", "x", "r", 14, 600, ["q"], ["r"]),
            ("11:57", "q", "p", 2, 700, ["q"], ["r"]),
            ("10:30", "s", "t", 17, 1000, ["s"], ["t"]),
        ],
    },
    "2": {
        "e": [
            ("11:56", "p", "q", 9, 30, ["p"], ["q"]),
            ("12:02", "q", "p", 1, 90, ["q"], ["p"]),
            ("12:40", "x", "r", 2, 70, ["x"], ["r"]),
            ("12:20", "r", "x", 8, 80, ["p"], ["x"]),
            ("20:00", "z", "z", 1, 1, ["z"], ["z"]),
        ],
        "n": [
            ("11:56", "r", "x", 15, 800, ["p"], ["q"]),
            ("11:59", "p", "t", 16, 900, ["p"], ["q"]),
            ("20:00", "z", "z", 1, 1, ["z"], ["z"]),
        ],
    },
}


def _marked(pair: str) -> Any:
    return pytest.param(pair, marks=() if PAIRS[pair].common else pytest.mark.full)


@pytest.mark.sampled
@pytest.mark.conformance("REC-11", "REC-12", "REC-13")
@pytest.mark.parametrize("pair", [_marked(name) for name in PAIRS])
def test_a_change_is_refused_exactly_where_state_does_not_fit(laboratory: Laboratory, pair: str) -> None:
    tried = PAIRS[pair]
    assert laboratory.outcome(tried) == tried.outcome
    before, now = (laboratory.kept(query, tried.mode) for query in (tried.before, tried.now))
    allowed = tried.outcome == "equal" and not tried.by_guide
    assert fits(before, now) is allowed, f"{before}\n{now}"


class Laboratory:
    """Runs queries on two waves of rows, each wave with its own folder of files."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self._root = root
        for wave, tables in _WAVES.items():
            for table, rows in tables.items():
                folder = root / wave / table
                folder.mkdir(parents=True)
                columns = ("at", "k", "j", "v", "w", "a", "b")
                lines = [
                    dict(zip(columns, (f"2024-01-01T{row[0]}:00Z", *row[1:]), strict=True)) for row in rows
                ]
                (folder / "rows.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
        for name, x, y in (("d", 1, 2), ("d2", 2, 1)):
            values = ", ".join(f"('{k}', {10 * i + x}, {10 * i + y})" for i, k in enumerate("pqrsxz"))
            spark.sql(f"SELECT * FROM VALUES {values} AS t(k, x, y)").write.parquet(str(root / name))
        self._frames = {wave: self._sources(spark.newSession(), wave) for wave in _WAVES}
        self._left: dict[tuple[QueryText, OutputMode], Path] = {}
        self._right: dict[tuple[QueryText, OutputMode], Counter[str]] = {}

    def kept(self, query: QueryText, mode: OutputMode) -> list[dict[str, Any]]:
        return kept_state(self._frame(query, "1"), mode)

    def outcome(self, pair: Pair) -> Outcome:
        right = self._right.get((pair.now, pair.mode))
        if right is None:
            right = self._second_wave(self._first_wave(pair.now, pair.mode), pair.now, pair.mode)
            self._right[pair.now, pair.mode] = right
        assert right, "the second wave gives no row: nothing would be noticed"
        left = self._first_wave(pair.before, pair.mode)
        try:
            return "equal" if self._second_wave(left, pair.now, pair.mode) == right else "wrong"
        except PySparkException:
            return "error"

    def _first_wave(self, query: QueryText, mode: OutputMode) -> Path:
        """A checkpoint that has seen the first wave."""
        known = self._left.get((query, mode))
        if known is None:
            known = self._left[query, mode] = self._root / f"checkpoint-{len(self._left)}"
            self._drain(query, "1", mode, known)
        return known

    def _second_wave(self, checkpoint: Path, query: QueryText, mode: OutputMode) -> Counter[str]:
        copy = self._root / "copy"
        shutil.copytree(checkpoint, copy)
        try:
            return self._drain(query, "2", mode, copy)
        finally:
            shutil.rmtree(copy)

    def _drain(self, query: QueryText, wave: str, mode: OutputMode, checkpoint: Path) -> Counter[str]:
        rows: Counter[str] = Counter()
        frame = self._frame(query, wave)
        # Only append mode waits for a batch behind the watermark.
        waits = str(mode == "append").lower()
        frame.sparkSession.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", waits)
        writer = frame.writeStream.outputMode(mode).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(checkpoint))
        writer.foreachBatch(
            lambda batch, number: rows.update(str(tuple(r)) for r in batch.collect())
        ).start().awaitTermination()
        return rows

    def _frame(self, query: QueryText, wave: str) -> DataFrame:
        frames = self._frames[wave]
        return frames["e"].sparkSession.sql(query) if isinstance(query, str) else query(frames)

    def _sources(self, session: SparkSession, wave: str) -> dict[str, DataFrame]:
        """The frames of a wave, which are views of its session too."""
        for key, value in _CONF.items():
            session.conf.set(key, value)
        frames = {}
        for name in ("e", "n"):
            # A pattern: under a plain path Spark misses the files of the first wave.
            rows = session.readStream.schema(_SCHEMA).json(str(self._root / f"[{wave}]" / name))
            # As the product marks its sources.
            marked = rows.observe(f"drawdown:source:{name}", F.count(F.lit(1)).alias("read"))
            frames[name] = marked.withWatermark("at", "10 minutes")
        for name in ("d", "d2"):
            frames[name] = session.read.parquet(str(self._root / name))
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        return frames


@pytest.fixture(scope="module")
def laboratory(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    return Laboratory(tmp_path_factory.mktemp("laboratory"), spark)
