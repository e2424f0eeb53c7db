"""`retention:` removes rows of a quarantine and values in records, and nothing that a way back needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from drawdown.delta.table import DeltaTableFiles
from drawdown.metastore import Metastore
from drawdown.metastore.operations.pruning import STRIPPED, strip_values
from drawdown.metastore.records import (
    Announcement,
    Batch,
    Change,
    Lease,
    Outcome,
    QuarantineDecision,
    Run,
    Verdict,
)
from drawdown.plan.table_readers import Readers
from drawdown.quarantine.row_states import folder_of, set_aside, write_keys
from drawdown.spec import load_pipeline, load_project
from drawdown.upkeep.expired_rows import Expired, expired, remove_expired
from drawdown.upkeep.one_pipeline import Tidied, UpkeepRequest, _Work
from drawdown.workspace import Generation, Workspace
from tests.support.ageing import records_grow_old
from tests.support.dag_project import DagProject

NAME = "events"
DAY, MONTH = timedelta(days=1), timedelta(days=31)
NOW = datetime.now(UTC)


class Kept:
    """A quarantine with a month-old row of each kind, by payload, and a fresh one; batch 5 waits."""

    def __init__(self, root: Path, retention: str) -> None:
        made = DagProject(root)
        made.pipeline(NAME, more=f"retention: {retention}")
        self.project = load_project(root)
        self.pipeline = load_pipeline(self.project, NAME)
        self.store = Metastore.open(self.project.metastore_url)
        self.lease = self.store.acquire(NAME, "host pid 1", "upkeep", timedelta(minutes=5))
        path = f"_drawdown/{NAME}/checkpoint-1"
        self.store.create_checkpoint(self.lease, 1, path, {})
        self.generation = Generation.of(Workspace(self.project, self.store), self.pipeline)
        for batch in (4, 5, 6):
            self.generation.storage.write_atomic(f"{path}/offsets/{batch}", b"v1")
        self.uri = str(made.storage / "quarantine" / NAME)
        batches = {"dropped": 0, "settled": 0, "reversible": 1, "open": 2, "late": 2, "held": 5}
        self.land(batches, NOW - MONTH)
        self.land({"fresh": 2}, NOW)
        self.decide("drop", "dropped", -1)
        self.decide("replay", "settled", 3)
        self.decide("replay", "reversible", 4)
        self.decide("drop", "held", -1)
        for number, status in ((3, "published"), (4, "published"), (5, "held")):
            self.judge(number, "fail" if status == "held" else "pass", publish=status == "published")

    def land(self, batches: dict[str, int], at: datetime) -> None:
        rows = {
            "source": [NAME] * len(batches),
            "reasons": [["late"] if payload == "late" else ["small"] for payload in batches],
            "payload": list(batches),
            "generation": [1] * len(batches),
            "batch_id": list(batches.values()),
            "run_id": ["run"] * len(batches),
            "set_aside_at": pa.array([at] * len(batches), pa.timestamp("us", "UTC")),
        }
        write_deltalake(self.uri, pa.table(rows), mode="append")

    def decide(self, kind: str, payload: str, batch: int) -> None:
        rows = [
            row
            for row in set_aside(Workspace(self.project, self.store), self.pipeline)
            if row.payload == payload
        ]
        id, storage = f"{kind}-{payload}", self.generation.storage
        keys = write_keys(storage, folder_of(self.pipeline, id), rows)
        if kind == "replay":
            storage.write_atomic(f"{folder_of(self.pipeline, id)}/rows/part.parquet", b"rows")
        decision = QuarantineDecision(id, NAME, kind, 1, len(rows), keys, batch)  # type: ignore[arg-type]
        self.store.note_decision(self.lease, decision)

    def judge(self, batch: int, outcome: Outcome, *, publish: bool) -> None:
        run = f"run-{batch}"
        self.store.start_run(Run(run, NAME, generation=1))
        self.store.note_batch(self.lease, Batch(NAME, 1, batch, run, 1), [], {})
        self.store.mark_committed(self.lease, 1, batch)
        results = [
            {"name": "small", "success": False, "observed": 7, "samples": [{"id": 7}], "exception": "7"}
        ]
        said = Verdict(NAME, 1, run, batch, batch, outcome, results, "id 7", measures={"volume": 1})
        self.store.record_verdict(self.lease, said)
        if publish:
            self.store.mark_published(self.lease, 1, [batch])
        self.store.finish_run(
            run, "failed", error={"id": "audit.fail", "what": "id 7", "where": "", "do": ""}
        )

    def expired(self) -> Expired:
        return expired(self.generation, self.store.now())

    def remove(self, found: Expired) -> None:
        def begin(version: int) -> Change:
            change = Change("change", NAME, "quarantine", 1, "retention", "upkeep", based_on=version)
            return self.store.begin_change(self.lease, change)

        remove_expired(self.generation, DeltaTableFiles(self.uri), found, begin)

    @property
    def payloads(self) -> set[str | None]:
        return {row.payload for row in set_aside(Workspace(self.project, self.store), self.pipeline)}


def test_old_decided_rows_go_and_those_that_a_way_back_or_a_slice_asks_for_stay(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "{quarantine: 30 days}")
    records_grow_old(kept.store, MONTH)
    before = DeltaTable(kept.uri).schema().to_json()
    found = kept.expired()
    assert dict(found.rows) == {"dropped": 1, "replayed": 1, "fed": 1}
    assert dict(found.stay) == {
        "the checkpoint, or a snapshot, can go back before their replay": 1,
        "their batch is not published": 1,
        "they are undecided": 1,
    }
    kept.remove(found)
    assert kept.payloads == {"reversible", "open", "held", "fresh"}
    feeds = {
        info.relative.split("/")[-3] for info in kept.generation.storage.walk(f"_drawdown/{NAME}/quarantine")
    }
    assert "replay-reversible" in feeds
    assert not list(kept.generation.storage.walk(f"{folder_of(kept.pipeline, 'replay-settled')}/rows"))
    assert kept.expired().keys == frozenset(), "the second upkeep finds nothing"
    assert [each for each in ("set_aside_at", "reasons") if each not in before] == []


def test_open_rows_go_only_where_somebody_said_so(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "{quarantine_open: 30 days}")
    found = kept.expired()
    assert dict(found.rows) == {"open": 1}
    kept.remove(found)
    assert kept.payloads == {"dropped", "settled", "reversible", "late", "held", "fresh"}


@pytest.mark.parametrize(
    "readers",
    [
        pytest.param(lambda table: Readers(needed={table: {"below": 1}}), id="streamed"),
        pytest.param(lambda _: Readers(unknown={"below": "checkpoint.torn"}), id="unknown"),
    ],
)
def test_a_quarantine_that_somebody_streams_keeps_its_rows(
    tmp_path: Path, readers: Callable[[str], Readers]
) -> None:
    """A stream over the table ends when rows that it has read are deleted."""
    kept = Kept(tmp_path, "{quarantine: 30 days}")
    before, files = kept.payloads, DeltaTableFiles(kept.uri)
    tidied = Tidied(NAME)
    request = UpkeepRequest("upkeep", "host pid 1", {})
    work = _Work(kept.generation, readers(files.table_id), request, lambda: kept.lease, tidied)
    work._expire(files)
    assert kept.payloads == before
    assert tidied.expired == {}
    assert "it is streamed, or may be, by below" in tidied.notes[-1]
    replace(work, readers=Readers())._expire(files)
    assert kept.payloads == {"reversible", "open", "held", "fresh"}


def test_without_retention_nothing_goes(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "{}")
    assert kept.expired() == Expired()


def test_a_commit_of_it_is_in_the_register_and_the_table_says_by_which_change(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "{quarantine: 30 days}")
    kept.remove(kept.expired())
    [change] = kept.store.open_changes(NAME)
    assert DeltaTableFiles(kept.uri).has_change(change)


def test_values_go_from_old_verdicts_and_errors_and_outcomes_stay(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "{}")
    records_grow_old(kept.store, MONTH)
    kept.judge(7, "warn", publish=True)
    kept.store.announcements.keep([told("failing", MONTH), told("held", DAY)])
    lease: Lease = kept.store.acquire(NAME, "host pid 1", "upkeep", timedelta(minutes=5))
    expect = {"verdicts": 2, "runs": 3, "announcements": 1}
    assert strip_values(kept.store, lease, 30 * DAY, dry=True) == expect
    assert strip_values(kept.store, lease, 30 * DAY) == expect
    assert strip_values(kept.store, lease, 30 * DAY) == {}
    new, held, *old = kept.store.verdicts(NAME, 10)
    assert (new.text, held.text) == ("id 7", "id 7"), "of a held slice somebody decides by it"
    for verdict in old:
        assert (verdict.outcome, verdict.text, verdict.measures) == ("pass", STRIPPED, {"volume": 1})
        assert "7" not in str(verdict.results)
    assert {str(run.error and run.error["what"]) for run in kept.store.runs(NAME, limit=10)} == {
        "id 7",
        STRIPPED,
    }
    assert {each.alert: each.sentence for each in kept.store.announcements.read()} == {
        "failing": STRIPPED,
        "held": "id 7",
    }


def told(alert: str, ago: timedelta) -> Announcement:
    return Announcement(NAME, alert, "ops", datetime.now(UTC) - ago, "id 7")


@pytest.mark.parametrize(
    ("own", "days"), [("retention: {quarantine: 1 day}", 1), ("", 9), ("retention: {verdicts: 1 day}", None)]
)
def test_a_pipelines_own_takes_the_place_of_the_projects(tmp_path: Path, own: str, days: int | None) -> None:
    made = DagProject(tmp_path, more="retention: {quarantine: 9 days}")
    made.pipeline(NAME, more=own)
    limit = load_pipeline(load_project(tmp_path), NAME).retained.quarantine
    assert (limit and limit.delta) == (None if days is None else days * DAY)
