"""Small scheduled runs beside the same query by stock spark-submit: nothing new, stateless, stateful.

    python -m tests.benchmarks.small_runs

Every turn lands one file of 5,000 events; checkpoints and tables go on from turn to turn, as in production.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from drawdown.metastore import Metastore
from drawdown.plan.preflight import preflight
from drawdown.spec import load_pipeline
from drawdown.workspace import Workspace
from tests.benchmarks.comparison import PAIRS, Comparison
from tests.benchmarks.contest import Contest, seconds_of_query
from tests.benchmarks.page import present

ROWS = 5_000
START = datetime(2024, 1, 1, tzinfo=UTC)
STOCK = "stock spark-submit"


def main() -> int:
    return present("small_runs", [*_drains("stateless"), *_drains("windowed"), _nothing_new()])


def _drains(query: str) -> list[Comparison]:
    """The whole process, its processor time, and the query's triggers alone."""
    with tempfile.TemporaryDirectory() as folder:
        contest = Contest(Path(folder), query, "json")
        seconds: tuple[list[float], list[float]] = [], []
        cores: tuple[list[float], list[float]] = [], []
        triggers: tuple[list[float], list[float]] = [], []
        for turn in range(PAIRS + 1):
            land(contest, turn)
            ours, by_hand = contest.ours(), contest.by_hand()
            if turn == 0:  # makes the tables and checkpoints
                continue
            for figures, pair in (
                (seconds, (ours.seconds, by_hand.seconds)),
                (cores, (ours.core_seconds, by_hand.core_seconds)),
                (triggers, (contest.seconds_of_our_query(), seconds_of_query(by_hand))),
            ):
                for taken, figure in zip(figures, pair, strict=True):
                    taken.append(figure)
    stateful = query != "stateless"
    return [
        Comparison(
            f"small {query} drain, whole process", STOCK, "s", *seconds, 1 / 1.5 if stateful else None
        ),
        Comparison(f"small {query} drain, whole process", STOCK, "core-s", *cores),
        Comparison(
            f"small {query} drain, its query alone", STOCK, "s", *triggers, 1 / 5 if stateful else None
        ),
    ]


def _nothing_new() -> Comparison:
    """The preflight's own time in the task's process, beside a job that starts Spark to find nothing."""
    with tempfile.TemporaryDirectory() as folder:
        contest = Contest(Path(folder), "windowed", "json")
        land(contest, 0)
        contest.ours(), contest.by_hand()
        project = contest.sandbox.project
        taken: tuple[list[float], list[float]] = [], []
        for _ in range(PAIRS):
            begun = time.monotonic()
            with Metastore.open(project.metastore_url) as metastore:
                found = preflight(Workspace(project, metastore), load_pipeline(project, "contest"))
            taken[0].append(time.monotonic() - begun)
            assert not found.work, found.reasons
            taken[1].append(contest.by_hand().seconds)
    return Comparison("nothing new: the preflight", f"{STOCK}, to find nothing", "s", *taken)


def land(contest: Contest, turn: int) -> None:
    contest.sandbox.land_json(f"landing/{turn:04}.json", events(turn, ROWS))


def events(turn: int, rows: int) -> Iterator[dict[str, object]]:
    """An hour of events: 20 keys, in no order, seven hours after the last."""
    chance = random.Random(turn)
    begin = START + timedelta(hours=7 * turn)
    for number in range(rows):
        yield {
            "id": turn * rows + number,
            "k": chance.randrange(20),
            "at": (begin + timedelta(seconds=chance.randrange(3600))).isoformat(),
            "v": chance.random(),
        }


if __name__ == "__main__":
    raise SystemExit(main())
