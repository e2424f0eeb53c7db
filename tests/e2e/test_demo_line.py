"""The demo's line with a real broker, a real scheduler and real Spark, on every fifth flight."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.demo.checks import compare_tables, cost_no_spark, wrong_counts
from dev.demo.data import days
from dev.demo.line import PIPELINES, DagRun, Line
from dev.demo.oracle import Oracle

ROOT = Path(__file__).parents[2]
EVERY = 5

pytestmark = [pytest.mark.timeout(600), pytest.mark.full]


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    with Line(ROOT, tmp_path_factory.mktemp("line") / "demo") as line:
        line.start_broker()
        line.start_airflow()
        line.delivery.prepare()
        yield line


@pytest.fixture(scope="module")
def three_days(line: Line) -> list[DagRun]:
    """The runs of three days, each delivered when the one before has ended."""
    runs = []
    for day in days(every=EVERY):
        line.delivery.deliver(day)
        run = line.run()
        if run.state != "success":
            raise line.failure(run)
        runs.append(run)
    return runs


@pytest.fixture(scope="module")
def idle(line: Line, three_days: list[DagRun]) -> DagRun:
    return line.run()


@pytest.fixture(scope="module")
def oracle(line: Line, idle: DagRun) -> Iterator[Oracle]:
    with Oracle(line.copy) as oracle:
        yield oracle


def test_every_pipeline_has_one_record_a_day(three_days: list[DagRun]) -> None:
    assert [sorted(day.runs) for day in three_days] == [sorted(PIPELINES)] * 3
    assert {run.state for day in three_days for run in day.runs.values()} == {"succeeded"}


def test_every_table_holds_the_rows_duckdb_makes_of_the_raw_data(line: Line, oracle: Oracle) -> None:
    comparisons = compare_tables(line.storage_root, oracle)
    assert {each.table: (each.missing[:3], each.surplus[:3]) for each in comparisons if not each.equal} == {}
    assert [each.table for each in comparisons if each.expected.total == 0] == []


def test_every_count_of_every_run_is_the_oracles(three_days: list[DagRun], oracle: Oracle) -> None:
    assert wrong_counts(three_days, oracle) == []


def test_every_row_read_is_accounted_for(three_days: list[DagRun]) -> None:
    assert [run.run_id for day in three_days for run in day.runs.values() if not run.counts.balanced] == []


def test_day_two_really_had_faults_of_every_kind(three_days: list[DagRun]) -> None:
    counts = three_days[1].runs["flights"].counts
    assert min(counts.malformed, counts.future, counts.quarantined, counts.late, counts.warned) > 0


def test_a_run_with_nothing_new_starts_no_spark(idle: DagRun) -> None:
    assert cost_no_spark(idle), idle
