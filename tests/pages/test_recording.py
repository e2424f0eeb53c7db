"""What changes how a pipeline stands is recorded at once: decisions, recovery, upkeep, new names, removal."""

from __future__ import annotations

import shutil
import sqlite3
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from drawdown.metastore import Metastore
from drawdown.metastore.records import Counts, Run
from drawdown.observe.figures import Seen, look
from drawdown.observe.record import record, record_backlog
from drawdown.spec import load_project
from drawdown.workspace import Workspace
from tests.support.fleet_records import FleetRecords
from tests.support.older_release import unpacked
from tests.support.sandbox import Sandbox
from tests.support.typed import refusal, typed


@pytest.fixture
def clicks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """A pipeline that has run twice; nothing is recorded of how it stands."""
    sandbox = unpacked(tmp_path / "project")
    monkeypatch.chdir(sandbox.root)
    typed("metastore", "upgrade")
    return sandbox


def recorded(sandbox: Sandbox, name: str = "clicks") -> Seen | None:
    with Metastore.open(sandbox.project.metastore_url) as metastore:
        return next(iter(look(metastore, [name])), None)


@pytest.mark.parametrize(
    "command",
    [
        ("checkpoint", "snapshot", "clicks"),
        ("checkpoint", "prune", "clicks"),
        ("upkeep", "clicks"),
        ("quarantine", "drop", "clicks", "--why", "old", "--yes"),
    ],
    ids=" ".join,
)
def test_a_command_that_changes_a_pipeline_records_how_it_stands(
    clicks: Sandbox, command: tuple[str, ...]
) -> None:
    assert recorded(clicks) is None
    typed(*command)
    seen = recorded(clicks)
    assert seen is not None
    assert seen.figures.last is not None, "of runs of before, too"
    assert seen.figures.totals["read"] > 0


def test_upkeep_that_changes_nothing_records_nothing(clicks: Sandbox) -> None:
    typed("upkeep", "clicks", "--dry-run")
    assert recorded(clicks) is None


def test_a_new_name_has_the_figures_and_a_removed_pipeline_none(clicks: Sandbox) -> None:
    typed("upkeep", "clicks")
    folder = clicks.root / "include/pipelines"
    (folder / "clicks").rename(folder / "visits")
    spec = folder / "visits/pipeline.yaml"
    spec.write_text(f"first_name: clicks\n{spec.read_text()}")
    typed("rename", "clicks", "visits")
    assert recorded(clicks) is None
    seen = recorded(clicks, "visits")
    assert seen is not None
    assert seen.finding.state != "refused"
    shutil.rmtree(folder / "visits")
    typed("remove", "visits", "--yes")
    assert recorded(clicks, "visits") is None


@pytest.mark.parametrize("decision", [("release",), ("discard",), ("rebuild", "discard")], ids=" ".join)
def test_a_decision_that_is_refused_is_recorded_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decision: tuple[str, ...]
) -> None:
    """Whatever a command did before it failed is seen."""
    monkeypatch.chdir(tmp_path)
    fleet = FleetRecords(tmp_path)
    fleet.pipeline("orders")
    fleet.ran("orders", "failed", verdict="fail")
    refusal(*decision, "orders", "--why", "a look")
    [seen] = look(fleet.metastore)
    assert seen.finding.state == "failed"
    assert datetime.now(seen.recorded_at.tzinfo) - seen.recorded_at < timedelta(minutes=1)


def test_totals_count_each_run_once_whenever_it_ends(fleet: FleetRecords) -> None:
    """A watch ends weeks after it began; runs that began later are counted before it."""
    fleet.pipeline("sales")
    watch = fleet.metastore.start_run(Run("watch", "sales", kind="watch"))
    for _ in range(2):
        fleet.ran("sales", counts=Counts(read=10, fed=10, late=1))
        fleet.record("sales")
        fleet.record("sales")
    assert totals(fleet)["late"] == 2
    fleet.metastore.finish_run(watch.run_id, "stopped", counts=Counts(read=5, fed=5, late=5))
    fleet.record("sales")
    fleet.record("sales")
    assert (totals(fleet)["read"], totals(fleet)["late"]) == (25, 7)


def totals(fleet: FleetRecords) -> dict[str, int]:
    [seen] = look(fleet.metastore)
    return seen.figures.totals


def test_figures_that_cannot_be_recorded_are_one_line_and_fail_nothing(
    fleet: FleetRecords, caplog: pytest.LogCaptureFixture
) -> None:
    fleet.pipeline("sales")
    fleet.ran("sales")
    with Workspace.open(load_project(fleet.root)) as workspace:
        with sqlite3.connect(fleet.root / "m.db") as other:
            for table in ("figures", "backlogs"):
                other.execute(f"ALTER TABLE {table} RENAME TO {table}_of_tomorrow")
        record(workspace, ["sales"])
        record_backlog(workspace, "sales", {"events": {"files": 1}})
    told = [each for each in caplog.records if each.name == "drawdown.observe.record"]
    assert [each.getMessage().partition(" (")[0] for each in told] == [
        "not recorded: figures of sales",
        "not recorded: backlog of sales",
    ]
    assert "Traceback" not in caplog.text
