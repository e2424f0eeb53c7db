"""`drawdown status`: each state by what is recorded, worst first, in 80 columns; `--watch`; `--json`."""

from __future__ import annotations

import io
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from drawdown.cli.main import app
from drawdown.cli.shown.sparkline import sparkline
from drawdown.cli.shown.status import status_screen
from drawdown.fleet.standing import WORST_FIRST, Finding, Standing, State, standings
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, Counts, Lease, Run, Verdict
from drawdown.spec import load_project
from drawdown.workspace import Workspace
from tests.support.command_line import DRAWDOWN, answer

SPEC = """
sources: {events: {format: text, path: landing}}
transform: transform.sql
sink: {format: delta, path: tables/NAME, schema: out.ddl}
"""
TTL = timedelta(minutes=5)


class Fleet:
    """A project whose metastore has what a test records."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "include/pipelines").mkdir(parents=True)
        (root / "include/project.yaml").write_text("storage_root: storage\nmetastore: sqlite:///m.db\n")
        self.metastore = Metastore.open(f"sqlite:///{root}/m.db")

    def pipeline(self, name: str, more: str = "") -> None:
        folder = self.root / "include/pipelines" / name
        folder.mkdir()
        (folder / "pipeline.yaml").write_text(SPEC.replace("NAME", name) + more)
        (folder / "transform.sql").write_text("SELECT value FROM events")
        (folder / "out.ddl").write_text("value STRING")

    def ran(self, name: str, state: Any = "succeeded", **values: Any) -> None:
        number = len(self.metastore.runs(name))
        self.metastore.start_run(Run(f"{name}-{number}", name))
        if state != "running":
            self.metastore.finish_run(f"{name}-{number}", state, **values)

    def leased(self, name: str) -> Lease:
        return self.metastore.acquire(name, "elsewhere pid 1", f"{name}-0", TTL)

    def batch(self, name: str, *, held: bool) -> None:
        lease = self.leased(name)
        self.metastore.create_checkpoint(lease, 1, f"_drawdown/{name}/checkpoint-1", {})
        batch = Batch(name, 1, 0, f"{name}-0", lease.epoch, counts=Counts(read=3, fed=3, staged=3))
        self.metastore.note_batch(lease, batch, [], {})
        self.metastore.mark_committed(lease, 1, 0)
        if held:
            self.metastore.record_verdict(lease, Verdict(name, 1, f"{name}-0", 0, 0, "fail"))
        self.metastore.release(lease)

    def standings(self, *names: str) -> list[Standing]:
        with Workspace.open(load_project(self.root)) as workspace:
            return standings(workspace, names)


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.chdir(tmp_path)
    return Fleet(tmp_path)


ERROR = {"id": "query.failed", "what": "division by zero\nmore", "where": "x", "do": "y"}
RECORDED: dict[str, Callable[[Fleet, str], None]] = {
    "ok": lambda fleet, name: fleet.ran(name, counts=Counts(read=5, fed=5, published=5)),
    "failed": lambda fleet, name: fleet.ran(name, "failed", error=ERROR),
    "never ran": lambda fleet, name: None,
    "held": lambda fleet, name: (fleet.ran(name, verdict="fail"), fleet.batch(name, held=True))[0],
    "waiting": lambda fleet, name: (fleet.ran(name), fleet.batch(name, held=False))[0],
    "running": lambda fleet, name: (fleet.ran(name, "running"), fleet.leased(name))[0],
}


@pytest.mark.parametrize("state", RECORDED)
def test_the_state_is_what_was_recorded(fleet: Fleet, state: str) -> None:
    fleet.pipeline("sales")
    RECORDED[state](fleet, "sales")
    [found] = fleet.standings("sales")
    assert found.finding.state == state, found
    assert (found.finding.do == "") == (state == "ok")


def test_a_run_whose_process_died_and_a_broken_spec_need_a_person(fleet: Fleet) -> None:
    fleet.pipeline("dead")
    fleet.ran("dead", "running")
    fleet.pipeline("broken", "nosuch: 1\n")
    dead, broken = fleet.standings("dead", "broken")
    assert (dead.finding.state, dead.finding.do) == ("failed", "drawdown run dead")
    assert (broken.finding.state, broken.finding.do) == ("refused", "drawdown validate broken")


def test_a_promise_of_freshness_is_kept_or_broken_by_the_last_publish(fleet: Fleet) -> None:
    for name, promise in (("kept", "1 hour"), ("late", "1 second")):
        fleet.pipeline(name, f'schedule: "@hourly"\nfreshness: {promise}\n')
        fleet.ran(name, counts=Counts(read=1, fed=1, published=1))
    time.sleep(1.1)
    assert [(each.pipeline, each.finding.state) for each in fleet.standings("kept", "late")] == [
        ("late", "stale"),
        ("kept", "ok"),
    ]


@pytest.mark.parametrize("state", ["retention at risk", "quarantine growing", "rebuild waiting"])
def test_states_of_two_words_fit_80_columns_too(fleet: Fleet, state: State) -> None:
    name = "customer_orders_enriched_with_returns_hourly"
    fleet.pipeline(name)
    RECORDED["ok"](fleet, name)
    [found] = fleet.standings(name)
    screen = Console(file=io.StringIO(), width=80)
    screen.print(status_screen([replace(found, signs={state: Finding(state, "why", "do")})]))
    assert isinstance(screen.file, io.StringIO)
    lines = screen.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[:2] == ["state", "pipeline"], "a table, and no list of values"
    assert f"{state} {name}: why" in lines


def test_the_worst_come_first_and_the_screen_fits_80_columns(fleet: Fleet) -> None:
    names = {state: f"customer_orders_enriched_{state.replace(' ', '_')}_hourly" for state in RECORDED}
    for state, name in names.items():
        fleet.pipeline(name)
        RECORDED[state](fleet, name)
    found = fleet.standings(*names.values())
    states = [each.finding.state for each in found]
    assert states == [state for state in WORST_FIRST if state in RECORDED]
    screen = Console(file=io.StringIO(), width=80)
    screen.print(status_screen(found))
    assert isinstance(screen.file, io.StringIO)
    text = screen.file.getvalue()
    assert max(map(len, text.splitlines())) <= 80, text
    assert "…" not in text
    for state in states:
        assert state in text
    assert "query.failed: division by zero" in " ".join(text.split())


def test_json_has_nulls_for_what_is_not_known(fleet: Fleet) -> None:
    fleet.pipeline("sales")
    RECORDED["running"](fleet, "sales")
    [found] = answer(CliRunner().invoke(app, ["status", "--json"]).stdout)
    assert found["last_run"]["read"] is None
    assert (found["published_at"], found["read_by_last_runs"], found["freshness"]) == (None, [None], None)


def test_watch_refreshes_and_ctrl_c_ends_it_quietly(fleet: Fleet) -> None:
    fleet.pipeline("sales")
    watching = subprocess.Popen(
        [*DRAWDOWN, "status", "--watch", "--every", "0.5"],
        cwd=fleet.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    assert any("never ran" in line for line in watching.stdout)
    watching.send_signal(signal.SIGINT)
    _, complaints = watching.communicate(timeout=60)
    assert (watching.returncode, complaints) == (130, "")


@pytest.mark.parametrize(
    ("values", "line"),
    [([], ""), ([0, 0], "▁▁"), ([0, 1, 1_000_000], "▁▂█"), ([None, 7], "·█"), ([4, 8], "▅█")],
)
def test_a_sparkline_tells_nothing_from_little_and_unknown_from_both(
    values: list[float | None], line: str
) -> None:
    assert sparkline(values) == line
