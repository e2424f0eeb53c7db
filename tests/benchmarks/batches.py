"""What one more batch costs: the same backlog in 1, 5, 10 and 20 batches, by a drain and by hand.

    python -m tests.benchmarks.batches

Every turn drains 20 files of 500 events into a new table with a new checkpoint.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.comparison import Comparison, in_turns
from tests.benchmarks.contest import TUNED, Contest
from tests.benchmarks.page import present
from tests.benchmarks.small_runs import events
from tests.benchmarks.usage import Usage

FILES = 20
ROWS = 500
BATCHES = (5, 10, 20)
RIVAL = "hand-written job, tuned"


def main() -> int:
    found = []
    with tempfile.TemporaryDirectory() as name:
        for query in ("stateless", "windowed"):
            folder = Path(name) / query
            once = _drains(query, folder / "1", 1)
            for batches in BATCHES:
                found += _more(query, batches, once, _drains(query, folder / str(batches), batches))
    return present("batches", found)


Pairs = list[tuple[Usage, Usage]]


def _more(query: str, batches: int, once: Pairs, often: Pairs) -> list[Comparison]:
    """Of each batch beyond the first, in the whole process."""
    return [
        Comparison(
            f"{query}, each batch more of {batches}",
            RIVAL,
            unit,
            *(
                [
                    (getattr(b[way], of) - getattr(a[way], of)) / (batches - 1)
                    for a, b in zip(once, often, strict=True)
                ]
                for way in (0, 1)
            ),
        )
        for unit, of in (("s", "seconds"), ("core-s", "core_seconds"))
    ]


def _drains(query: str, folder: Path, batches: int) -> Pairs:
    def contest(turn: int, way: str) -> Contest:
        fresh = folder / f"{way}{turn}"
        fresh.mkdir(parents=True)
        made = Contest(fresh, query, "json", max_files=FILES // batches, settings=TUNED)
        for number in range(FILES):
            rows = [json.dumps(row) for row in events(number, ROWS)]
            made.sandbox.land(f"landing/{number:03}.json", rows, mtime=1_700_000_000 + 10 * number)
        return made

    def used(way: str, turn: int) -> Usage:
        made = contest(turn, way)
        taken = made.ours() if way == "ours" else made.by_hand()
        shutil.rmtree(folder / f"{way}{turn}")
        return taken

    return in_turns(lambda turn: used("ours", turn), lambda turn: used("rival", turn), warm_up=batches == 1)


if __name__ == "__main__":
    sys.exit(main())
