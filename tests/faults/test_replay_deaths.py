"""`drawdown backfill` dies around its steps: the same command again gives the table of one that lived."""

from __future__ import annotations

import signal
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.database import TestDatabase
from tests.support.deaths import free_lease, start_command
from tests.support.replays import FIRST, REPLAYED, drain_days, replayed
from tests.support.sandbox import Sandbox

FULL = pytest.mark.full
SINKS = {
    "delta": REPLAYED,
    "postgres": REPLAYED.replace("format: delta, path: tables/hourly", "format: postgres, table: public.out"),
}
INTERVAL = "2024-01-03", "2024-01-05"
THIRD, FIFTH = FIRST + timedelta(days=2), FIRST + timedelta(days=4)
Totals = Counter[tuple[datetime, str]]


@pytest.fixture
def sandbox(postgres_sandbox: Sandbox) -> Sandbox:
    return postgres_sandbox


def totals(sandbox: Sandbox, database: TestDatabase, sink: str) -> Totals:
    rows = sandbox.delta("tables/hourly") if sink == "delta" else database.table()
    found = Counter({(hour.astimezone(UTC), k): total for hour, k, total in rows})
    assert len(found) == len(rows), "no window twice"
    return found


def within(found: Totals) -> Totals:
    return Counter({key: n for key, n in found.items() if THIRD <= key[0] < FIFTH})


@pytest.mark.parametrize(
    ("sink", "moment"),
    [
        pytest.param("delta", "before replay.stage", marks=FULL),
        ("delta", "after replay.stage"),
        pytest.param("delta", "before replay.commit", marks=FULL),
        pytest.param("delta", "after replay.commit", marks=FULL),
        pytest.param("postgres", "before replay.stage", marks=FULL),
        pytest.param("postgres", "after replay.stage", marks=FULL),
        pytest.param("postgres", "before replay.commit", marks=FULL),
        pytest.param("postgres", "after publish.copy", marks=FULL),
        pytest.param("postgres", "after replay.commit", marks=FULL),
    ],
)
def test_the_same_replay_again_gives_the_table_of_one_that_lived(
    sandbox: Sandbox, database: TestDatabase, sink: str, moment: str
) -> None:
    everything = drain_days(sandbox, SINKS[sink])
    before = totals(sandbox, database, sink)
    replaced = within(everything) + (before - within(before))
    assert before != replaced, "events came too late"

    words = ["backfill", "hourly", "--from", INTERVAL[0], "--to", INTERVAL[1], "--interval", "2 days"]
    killed = start_command(sandbox, words, f"kill {moment}")
    said, _ = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, said
    assert totals(sandbox, database, sink) == (replaced if moment == "after replay.commit" else before)

    free_lease(sandbox)
    replayed(sandbox, *INTERVAL)
    assert totals(sandbox, database, sink) == replaced
    assert not list(sandbox.storage.glob("_drawdown/hourly/replays/*")), "nothing of either is left"
    with sandbox.metastore() as metastore:
        states = [run.state for run in metastore.runs("hourly") if run.kind == "replay"]
    assert states == ["succeeded", "crashed"]
