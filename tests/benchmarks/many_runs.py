"""Run 100 and run 1,000 of a stateful pipeline beside run 10: a history must cost nothing.

    python -m tests.benchmarks.many_runs [RUNS ...]

The history is made of real drains with the product's defaults and no upkeep, each with new data, one after
another in a warm session; what is measured are whole processes, as a DAG submits them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from tests.benchmarks.comparison import Comparison, in_turns
from tests.benchmarks.contest import Contest
from tests.benchmarks.page import present
from tests.benchmarks.small_runs import land
from tests.benchmarks.usage import Usage
from tests.support.spark import start_session

YOUNG = 10
OLD = (100, 1_000)
WANTED = 1.15


class History:
    """A pipeline that has run so many times less one."""

    def __init__(self, folder: Path, runs: int, session: SparkSession) -> None:
        folder.mkdir()
        self._contest, self._runs = Contest(folder, "windowed", "json"), 0
        self._contest.sandbox.spark = session
        while self._runs < runs - 1:
            self._land()
            self._contest.sandbox.run("contest")

    def next_run(self, _: int) -> Usage:
        self._land()
        return self._contest.ours()

    def size(self) -> str:
        """Of the checkpoint."""
        folder = self._contest.sandbox.storage / "_drawdown" / "contest" / "checkpoint-1"
        files = [path for path in folder.rglob("*") if path.is_file()]
        return f"{len(files)} files, {sum(path.stat().st_size for path in files):,} bytes"

    def _land(self) -> None:
        land(self._contest, self._runs)
        self._runs += 1


def main(*old: int) -> int:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        session = start_session()
        histories = {runs: History(Path(folder) / str(runs), runs, session) for runs in (YOUNG, *old)}
        session.stop()
        for runs, history in histories.items():
            print(f"before run {runs:,}: checkpoint of {history.size()}", flush=True)
        for runs in old:
            found += _compare(runs, histories[runs], histories[YOUNG])
    return present("many_runs", found)


def _compare(runs: int, old: History, young: History) -> list[Comparison]:
    pairs = in_turns(old.next_run, young.next_run)
    return [
        Comparison(
            f"run {runs:,}, whole process",
            f"run {YOUNG}",
            unit,
            *([getattr(pair[way], of) for pair in pairs] for way in (0, 1)),
            WANTED,
        )
        for unit, of in (("s", "seconds"), ("core-s", "core_seconds"))
    ]


if __name__ == "__main__":
    sys.exit(main(*(map(int, sys.argv[1:]) if sys.argv[1:] else OLD)))
