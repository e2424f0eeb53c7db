"""A pipeline with state for hosts that share nothing, the files that it reads, and what must come out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.support.host_project import Beyond
from tests.support.slow import slow_transform

QUALITY = """
rules:
  - {name: k_is_there, check: "k is not null", on_fail: fail}
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: n, min_value: 1}
"""
SPEC = """
sources:
  events: {format: json, path: landing/events, schema: "id INT, k STRING", options: {maxFilesPerTrigger: 1}}
transform: transform.py
sink: {format: delta, path: tables/counts, schema: out.ddl, mode: update, keys: [k], publish: audited}
state: {partitions: 2}
cluster: """
FILES, ROWS = 4, 10
COUNTED = '.groupBy("k").count().withColumnRenamed("count", "n")'
CHECKPOINT = "_drawdown/counts/checkpoint-1"


def counts(cluster: str, seconds: float | Path = 0.5) -> dict[str, dict[str, str]]:
    """A pipeline with state that takes its time for each row: seconds, or a file that says how many."""
    return {
        "counts": {
            "pipeline.yaml": f"{SPEC}{cluster}\n",
            "transform.py": slow_transform("events", "k", "string", seconds, COUNTED),
            "out.ddl": "k STRING, n BIGINT",
            "quality.yaml": QUALITY,
        }
    }


class Landed:
    """Waves of files in the bucket, and how often each key is in all of them."""

    def __init__(self, servers: Beyond) -> None:
        self._servers = servers
        self.keys: Counter[str] = Counter()
        self._waves = 0

    def wave(self) -> None:
        for file in range(FILES):
            rows = [{"id": i, "k": "abcde"[(i * i + file + self._waves) % 5]} for i in range(ROWS)]
            self._servers.land(f"landing/events/{self._waves}-{file}.json", rows)
            self.keys.update(row["k"] for row in rows)
        self._waves += 1

    def assert_counted(self) -> None:
        found = Counter((row["k"], row["n"]) for row in self._servers.rows("tables/counts"))
        assert found == Counter(self.keys.items())


def running(servers: Beyond, batch: int) -> bool:
    """Whether Spark has planned a batch and has not committed it."""
    planned, done = (set(servers.files(f"{CHECKPOINT}/{log}")) for log in ("offsets", "commits"))
    return f"{CHECKPOINT}/offsets/{batch}" in planned and f"{CHECKPOINT}/commits/{batch}" not in done
