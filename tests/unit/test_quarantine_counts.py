"""What `drawdown quarantine list` counts is what the rows of the quarantine are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from drawdown.delta.table import DeltaTableFiles
from drawdown.metastore import this_process
from drawdown.quarantine.drop import Drop, drop
from drawdown.quarantine.row_states import Alike, Choice, counted, counts, set_aside, totals
from drawdown.sinks.locations import quarantine_uri
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace
from tests.support.sandbox import Sandbox
from tests.support.set_aside import FILES, NAME, SPEC

_ROWS = 400
_REASONS = (["fast"], ["fast", "far, far"], ["late"], ["malformed"], [])


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """A pipeline with a quarantine, made without Spark."""
    return Sandbox(tmp_path / "project")


@pytest.fixture
def pipeline(sandbox: Sandbox) -> Pipeline:
    pipeline = sandbox.pipeline(NAME, SPEC, **FILES)
    numbers = range(_ROWS)
    at = datetime(2024, 1, 1, 23, 59, tzinfo=UTC)
    table = pa.table(
        {
            "source": ["events" if n % 7 else "others" for n in numbers],
            "reasons": pa.array([_REASONS[n % len(_REASONS)] for n in numbers], pa.list_(pa.string())),
            "payload": [f"record {n}" for n in numbers],
            "file": [f"/landing/{n % 3}.csv" if n % 11 else None for n in numbers],
            "generation": pa.array([1 if n % 13 else None for n in numbers], pa.int32()),
            "batch_id": pa.array([n % 2 for n in numbers], pa.int64()),
            "run_id": ["run"] * _ROWS,
            "set_aside_at": [at + timedelta(minutes=n % 2) if n % 17 else None for n in numbers],
        }
    )
    write_deltalake(quarantine_uri(sandbox.project, pipeline), table)
    return pipeline


def _found(sandbox: Sandbox, pipeline: Pipeline, choice: Choice) -> list[Alike]:
    with sandbox.metastore() as metastore:
        return counted(Workspace(sandbox.project, metastore), pipeline, choice)


def _one_by_one(sandbox: Sandbox, pipeline: Pipeline, choice: Choice) -> Counter[tuple[object, ...]]:
    with sandbox.metastore() as metastore:
        rows = [row for row in set_aside(Workspace(sandbox.project, metastore), pipeline) if choice.fits(row)]
    return Counter(
        (
            row.state, row.source, row.reasons, row.generation, row.batch_id,
            row.set_aside_at and row.set_aside_at.date(), row.file if choice.files else None,
        )
        for row in rows
    )  # fmt: skip


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize(
    "choice",
    [Choice(), Choice(rules=("far, far", "late")), Choice(batches=(1,)), Choice(files=("1.csv",))],
    ids=["all", "rules", "batches", "files"],
)
def test_counts_are_those_of_the_rows(
    sandbox: Sandbox, pipeline: Pipeline, choice: Choice, dropped: bool
) -> None:
    if dropped:
        with sandbox.metastore() as metastore:
            asked = Drop(Choice(rules=("fast",), batches=(0,)), "run-1", this_process(), "ada", "no")
            assert drop(Workspace(sandbox.project, metastore), pipeline, asked) > 0
    found = _found(sandbox, pipeline, choice)
    by_all = {(a.state, a.source, a.reasons, a.generation, a.batch_id, a.day, a.file): a.rows for a in found}
    assert len(by_all) == len(found)
    assert by_all == _one_by_one(sandbox, pipeline, choice)
    assert (totals(found)["dropped"] > 0) == dropped or choice.batches == (1,)
    both = sum(a.rows for a in found if len(a.reasons) == 2)
    of_lines = sum(line[state] for line in counts(found) for state in totals(found))
    assert of_lines == sum(totals(found).values()) + both


def test_without_a_decision_no_record_is_read(
    sandbox: Sandbox, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Sequence[str] | None] = []
    content = DeltaTableFiles.content

    def noting(self: DeltaTableFiles, columns: Sequence[str] | None = None) -> pa.Table:
        asked.append(columns)
        return content(self, columns)

    monkeypatch.setattr(DeltaTableFiles, "content", noting)
    assert totals(_found(sandbox, pipeline, Choice()))["open"] == _ROWS * 4 // 5
    assert asked == [["batch_id", "generation", "reasons", "set_aside_at", "source"]]
