"""`drawdown status`: each state by what is recorded, worst first, in 80 columns; `--watch`; `--json`."""

from __future__ import annotations

import io
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from drawdown.cli.main import app
from drawdown.cli.shown.sparkline import sparkline
from drawdown.cli.shown.status import status_screen
from drawdown.fleet.standing import WORST_FIRST, Finding, Standing, State, standings
from drawdown.metastore.records import Counts
from drawdown.spec import load_project
from drawdown.workspace import Workspace
from tests.support.command_line import DRAWDOWN, answer
from tests.support.fleet_records import FleetRecords


class Fleet(FleetRecords):
    """Records, and how its pipelines stand by them."""

    def stands(self, name: str, state: str) -> None:
        """Record what brings a pipeline into this state."""
        self.pipeline(name)
        for record in RECORDED[state]:
            record(self, name)

    def standings(self, *names: str) -> list[Standing]:
        with Workspace.open(load_project(self.root)) as workspace:
            return standings(workspace, names)


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.chdir(tmp_path)
    return Fleet(tmp_path)


ERROR = {"id": "query.failed", "what": "division by zero\nmore", "where": "x", "do": "y"}
RECORDED: dict[str, list[Callable[[Fleet, str], object]]] = {
    "ok": [lambda fleet, name: fleet.ran(name, counts=Counts(read=5, fed=5, published=5))],
    "failed": [lambda fleet, name: fleet.ran(name, "failed", error=ERROR)],
    "never ran": [],
    "held": [lambda fleet, name: fleet.ran(name, verdict="fail"), Fleet.held],
    "waiting": [Fleet.ran, Fleet.committed],
    "running": [lambda fleet, name: fleet.ran(name, "running"), Fleet.leased],
}


@pytest.mark.parametrize("state", RECORDED)
def test_the_state_is_what_was_recorded(fleet: Fleet, state: str) -> None:
    fleet.stands("sales", state)
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
    fleet.stands(name, "ok")
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
        fleet.stands(name, state)
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
    fleet.stands("sales", "running")
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
