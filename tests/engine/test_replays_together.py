"""Replays beside each other, again, and killed: the table is that of one computation over all the data."""

from __future__ import annotations

import random
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from drawdown.application import Application, Report
from drawdown.spec import load_pipeline
from drawdown.spec.interval import Interval
from tests.support.deaths import free_lease, start_command
from tests.support.replays import REPLAYED
from tests.support.workspace import Workspace

FIRST = datetime(2024, 1, 1, tzinfo=UTC)
DAYS = 10


def drain_days(workspace: Workspace, spec: str = REPLAYED) -> Counter[tuple[datetime, str]]:
    """Ten days in two runs, most events of the second one too late; what all of them sum up to."""
    workspace.pipeline(
        "hourly",
        spec,
        events_ddl="at TIMESTAMP, k STRING",
        hourly_ddl="hour TIMESTAMP, k STRING, total BIGINT",
        transform_sql="SELECT window.start AS hour, k, count(*) AS total FROM events"
        " GROUP BY window(at, '1 hour'), k",
    )
    chance = random.Random(1)
    expected: Counter[tuple[datetime, str]] = Counter()
    for wave in range(2):
        minutes = [chance.randrange(DAYS * 24 * 60) for _ in range(60)] + [DAYS * 24 * 60 + wave]
        events = [(FIRST + timedelta(minutes=each), chance.choice("ab")) for each in minutes]
        rows = [{"at": at.isoformat(), "k": k} for at, k in events]
        workspace.land_json(f"landing/events/{wave}.json", rows)
        workspace.run("hourly")
        expected.update((at.replace(minute=0), k) for at, k in events if at < FIRST + timedelta(days=DAYS))
    return expected


def totals(workspace: Workspace) -> Counter[tuple[datetime, str]]:
    rows = workspace.delta("tables/hourly")
    found = Counter({(hour.astimezone(UTC), k): total for hour, k, total in rows})
    assert len(found) == len(rows), "no window twice"
    return found


def replayed(workspace: Workspace, interval: Interval) -> Report:
    with workspace.metastore() as metastore:
        application = Application(workspace.project, metastore, session=workspace.spark)
        return application.replay(load_pipeline(workspace.project, "hourly"), [interval])[0]


def test_ten_intervals_together_and_again_equal_one_computation(workspace: Workspace) -> None:
    expected = drain_days(workspace)
    assert totals(workspace) != expected, "late events were dropped"
    days = list(Interval(FIRST, FIRST + timedelta(days=DAYS)).parts(timedelta(days=1)))
    order = [*days, *random.Random(2).sample(days, 3)]
    random.Random(3).shuffle(order)
    with ThreadPoolExecutor(3) as threads:
        reports = list(threads.map(lambda day: replayed(workspace, day), order))
    assert [report.error for report in reports if report.error] == []
    assert totals(workspace) == expected


def test_a_replay_that_is_killed_changes_nothing_and_again_it_is_whole(workspace: Workspace) -> None:
    drain_days(workspace)
    before = totals(workspace)
    words = ["backfill", "hourly", "--from", "2024-01-03", "--to", "2024-01-05", "--interval", "2 days"]
    killed = start_command(workspace, words, "kill after replay.stage")
    said, _ = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, said
    assert totals(workspace) == before
    free_lease(workspace)
    again = start_command(workspace, words)
    said, _ = again.communicate()
    assert again.returncode == 0, said
    assert "1 of 1 intervals replaced" in said
    after = totals(workspace)
    third, fifth = FIRST + timedelta(days=2), FIRST + timedelta(days=4)
    assert {key: n for key, n in after.items() if not third <= key[0] < fifth} == {
        key: n for key, n in before.items() if not third <= key[0] < fifth
    }
    assert after != before
    assert not list(workspace.storage.glob("_drawdown/hourly/replays/*"))
    with workspace.metastore() as metastore:
        states = [run.state for run in metastore.runs("hourly") if run.kind == "replay"]
    assert states == ["succeeded", "crashed"]
