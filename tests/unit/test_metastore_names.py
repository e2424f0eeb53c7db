"""All that a metastore keeps under a name: given to another, or forgotten; on both stores."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from drawdown.errors import BusyError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, Change, FileMark, Lease, Run, StagedFile
from drawdown.metastore.tables import metadata

TTL = timedelta(minutes=5)
ROOTS = [("_drawdown/clicks/", "_drawdown/visits/"), ("/root/_drawdown/clicks/", "/root/_drawdown/visits/")]


@pytest.fixture
def lease(metastore: Metastore) -> Lease:
    """Of `clicks`, of which every table has something; and so has another pipeline with such a name."""
    for name in ("clicks_too", "clicks"):
        lease = metastore.acquire(name, "a test", f"run-{name}", TTL)
        metastore.start_run(Run(f"run-{name}", name))
        metastore.create_checkpoint(lease, 1, f"_drawdown/{name}/checkpoint-1", {})
        file = StagedFile("output", f"/root/_drawdown/{name}/staged/a.parquet", 1, 1)
        at = datetime(2026, 1, 1, tzinfo=UTC)
        metastore.note_batch(lease, Batch(name, 1, 0, f"run-{name}", lease.epoch), [file], {"s": at})
        metastore.note_read_files(lease, 1, "s", {f"/root/landing/{name}/a": FileMark(1, 1)})
        metastore.begin_change(
            lease,
            Change(f"c-{name}", name, "output", 1, "drain", lease.run_id, place=f"_drawdown/{name}/staged/r"),
        )
        metastore.release(metastore.acquire(f"{name}#replay 2026", "a test", "r", TTL))
    return lease


def rows(metastore: Metastore, name: str) -> dict[str, int]:
    """Table to how many of its rows are the pipeline's."""
    with metastore._engine.begin() as conn:
        found = {
            table.name: sum(
                str(row).partition("#")[0] == name for row in conn.execute(select(table.c.pipeline)).scalars()
            )
            for table in metadata.tables.values()
            if "pipeline" in table.c
        }
    return {table: count for table, count in found.items() if count}


def test_a_rename_takes_every_row_along_and_no_row_of_another(metastore: Metastore, lease: Lease) -> None:
    before, others = rows(metastore, "clicks"), rows(metastore, "clicks_too")
    assert set(before) >= {"batches", "changes", "checkpoints", "leases", "maxima", "read_files", "runs"}
    metastore.rename(lease, "visits", ROOTS)
    assert rows(metastore, "clicks") == {}
    assert rows(metastore, "visits") == before
    assert rows(metastore, "clicks_too") == others
    [checkpoint] = metastore.generations("visits")
    assert checkpoint.path == "_drawdown/visits/checkpoint-1"
    [(_, file)] = metastore.staged_files("visits", 1, [0])
    assert file.path == "/root/_drawdown/visits/staged/a.parquet"
    [change] = metastore.open_changes("visits")
    assert (change.place, change.lease) == ("_drawdown/visits/staged/r", "visits")
    assert metastore.read_files("visits", 1, "s") == {"/root/landing/clicks/a": FileMark(1, 1)}
    assert metastore.acquire("visits", "a test", "next", TTL).epoch > lease.epoch
    assert metastore.names() == {"visits", "clicks_too"}


def test_what_is_forgotten_is_all_of_it_and_nothing_of_another(metastore: Metastore, lease: Lease) -> None:
    others = rows(metastore, "clicks_too")
    assert metastore.forget(lease) > 0
    assert rows(metastore, "clicks") == {}
    assert rows(metastore, "clicks_too") == others
    assert metastore.names() == {"clicks_too"}


def test_neither_while_an_interval_is_replayed(metastore: Metastore, lease: Lease) -> None:
    before = rows(metastore, "clicks")
    metastore.acquire("clicks#replay 2026", "another", "r", TTL)
    with pytest.raises(BusyError):
        metastore.rename(lease, "visits", ROOTS)
    with pytest.raises(BusyError):
        metastore.forget(lease)
    assert rows(metastore, "clicks") == before


def test_what_was_recorded_under_the_new_name_gives_way(metastore: Metastore, lease: Lease) -> None:
    """A schedule records every folder of the project: a renamed one may be seen before its records move."""
    for name in (lease.pipeline, "visits"):
        metastore.figures.record(name, {"of": name})
        metastore.figures.note_backlog(name, {"events": {"files": 1}})
    metastore.rename(lease, "visits", ROOTS)
    [kept] = metastore.figures.read()
    assert (kept.pipeline, json.loads(kept.content)) == ("visits", {"of": lease.pipeline})
    assert len(metastore.figures.backlogs("visits")) == 1
