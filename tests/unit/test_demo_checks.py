"""The demo's checks find what is wrong, and its report shows it."""

from dataclasses import asdict
from pathlib import Path

import pytest
from rich.console import Console

from dev.demo.checks import WrongCount, cost_no_spark, unbalanced, wrong_counts
from dev.demo.data import FLIGHT_COLUMNS
from dev.demo.line import PIPELINES, DagRun
from dev.demo.oracle import Oracle
from dev.demo.report import comparison_table, print_differences, runs_table
from dev.demo.rows import Comparison, normal
from drawdown.metastore.records import Counts, Run

REFERENCE = {
    "planes": "tailnum,manufacturer,model,seats\nN1,EMBRAER,E-1,55\n",
    "airlines": "carrier,name\nUA,United\n",
    "airports": "faa,name\nEWR,Newark\n",
}


def dag_run(tasks: dict[str, str | None], state: str = "success", **runs: Run) -> DagRun:
    return DagRun("manual__1", state, tasks, 1.0, runs)


def run_of(pipeline: str, **counts: int) -> Run:
    return Run(f"run-{pipeline}", pipeline, verdict="pass", counts=Counts(**counts))


@pytest.fixture
def oracle(tmp_path: Path) -> Oracle:
    """One flight and no weather on day 1."""
    (tmp_path / "day1" / "flights").mkdir(parents=True)
    line = "UA,1,N1,EWR,BQN,2013-01-01T10:00:00Z,2013-01-01T10:00:00Z,5,,30,100"
    (tmp_path / "day1" / "flights" / "a.csv").write_text(f"{','.join(FLIGHT_COLUMNS)}\n{line}\n")
    (tmp_path / "day1" / "weather.jsonl").write_text("\n")
    (tmp_path / "reference").mkdir()
    for name, text in REFERENCE.items():
        (tmp_path / "reference" / f"{name}.csv").write_text(text)
    return Oracle(tmp_path)


def test_counts_are_right_when_every_number_is_the_oracles(oracle: Oracle) -> None:
    runs = {name: run_of(name, **asdict(oracle.counts(name, 1))) for name in PIPELINES}
    assert wrong_counts([dag_run({}, **runs)], oracle) == []


def test_a_wrong_count_is_named_with_day_pipeline_and_both_numbers(oracle: Oracle) -> None:
    runs = {name: run_of(name, **asdict(oracle.counts(name, 1))) for name in PIPELINES}
    runs["flights"] = run_of("flights", read=1, published=3)
    assert wrong_counts([dag_run({}, **runs)], oracle) == [WrongCount(1, "flights", "published", 1, 3)]


def test_a_pipeline_without_a_record_has_counted_nothing(oracle: Oracle) -> None:
    found = wrong_counts([dag_run({})], oracle)
    assert WrongCount(1, "flights_enriched", "read", 1, 0) in found
    assert all(each.pipeline != "weather" for each in found)


def test_a_run_that_lost_rows_between_the_counts_is_named() -> None:
    even, odd = run_of("flights", read=3, malformed=1, fed=2), run_of("weather", read=3, fed=2)
    assert unbalanced([dag_run({}, flights=even, weather=odd)]) == ["run-weather"]


@pytest.mark.parametrize(
    ("run", "quiet"),
    [
        (dag_run({"preflight": "success", "drain": "skipped"}), True),
        (dag_run({"preflight": "success", "drain": "success"}), False),
        (dag_run({"preflight": "success", "drain": "skipped"}, flights=run_of("flights")), False),
        (dag_run({"preflight": "failed", "drain": "skipped"}, state="failed"), False),
        (dag_run({"preflight": "success"}), False),
    ],
)
def test_only_a_skipped_drain_without_a_record_cost_no_spark(run: DagRun, quiet: bool) -> None:
    assert cost_no_spark(run) is quiet


def test_the_report_shows_numbers_and_the_differing_rows() -> None:
    console = Console(record=True, width=160)
    different = Comparison("tables/t", normal(["x"], [(1,)]), normal(["x"], [(2,)]))
    day = dag_run({}, **{name: run_of(name, read=4321, fed=4321) for name in PIPELINES})
    console.print(runs_table([day], dag_run({"drain": "skipped"})))
    console.print(comparison_table([different]))
    print_differences(console, [different], [WrongCount(2, "flights", "late", 15, 14)], ["run-7"])
    text = console.export_text()
    assert text.count("4321") == len(PIPELINES)
    assert "1 missing, 1 surplus" in text
    assert "tables/t, missing: x=1" in text
    assert "tables/t, surplus: x=2" in text
    assert "late is 14, DuckDB says 15" in text
    assert "run-7" in text
