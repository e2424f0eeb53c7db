"""Large backlogs beside a hand-written Available-now job of the same query with the same settings.

    python -m tests.benchmarks.large_runs [MOST_ROWS]

Every turn drains all rows into a new table with a new checkpoint, both ways.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.comparison import Comparison, in_turns
from tests.benchmarks.contest import TUNED, Contest
from tests.benchmarks.page import keep, present
from tests.benchmarks.usage import Usage
from tests.support.spark import start_session

ROWS = 20_000_000
QUERIES = {"stateless": ROWS, "windowed": ROWS, "joined": ROWS, "deduplicated": ROWS // 4}
"""With the rows of each: 20 million take the job by hand two minutes to deduplicate."""
FILES = 20
MAX_FILES = 5
"""Of a batch: four batches, between which the watermark moves."""
MEMORY = "3g"
RIVAL = "hand-written Available-now job"
WANTED = 1.05


def main(most: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        found: list[Comparison] = []
        for query, wanted in QUERIES.items():
            rows = min(most, wanted)
            events = Path(folder) / f"events-{rows}"
            if not events.exists():
                write_events(events, rows)
            found += _drains(query, events, Path(folder) / query, rows)
            keep("large_runs", found)
    return present("large_runs", found)


def _drains(query: str, events: Path, folder: Path, rows: int) -> list[Comparison]:
    def contest(turn: int, way: str) -> Contest:
        fresh = folder / f"{way}{turn}"
        fresh.mkdir(parents=True)
        made = Contest(fresh, query, "parquet", max_files=MAX_FILES, memory=MEMORY, settings=TUNED)
        made.land_all(events)
        return made

    def ours(turn: int) -> Usage:
        used = contest(turn, "ours").ours()
        shutil.rmtree(folder / f"ours{turn}")
        return used

    def by_hand(turn: int) -> Usage:
        used = contest(turn, "rival").by_hand()
        shutil.rmtree(folder / f"rival{turn}")
        return used

    pairs = in_turns(ours, by_hand, warm_up=query == "stateless")
    what = f"{query}, {rows:,} rows"
    return [
        Comparison(
            f"{what}: {part}", RIVAL, unit, [of(a) for a, _ in pairs], [of(b) for _, b in pairs], WANTED
        )
        for part, unit, of in (
            ("whole process", "s", _seconds),
            ("processor time", "core-s", _core_seconds),
            ("memory", "MB", _megabytes),
        )
    ]


def _seconds(used: Usage) -> float:
    return used.seconds


def _core_seconds(used: Usage) -> float:
    return used.core_seconds


def _megabytes(used: Usage) -> float:
    return used.megabytes


def write_events(folder: Path, rows: int) -> None:
    """Parquet files of events in the order of time: 1,000 keys, three days, every second row a duplicate."""
    spark = start_session()
    try:
        spark.range(0, rows, 1, FILES).selectExpr(
            "id",
            "CAST(hash(id DIV 2) & 1023 AS INT) % 1000 AS k",
            f"timestamp_seconds(1704067200 + (id DIV 2) * 2 * 259200 DIV {rows}) AS at",
            "(hash(id) & 65535) / 65535D AS v",
        ).write.parquet(str(folder))
    finally:
        spark.stop()
    for other in [*folder.glob("_*"), *folder.glob(".*")]:
        other.unlink()


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS))
