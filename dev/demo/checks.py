"""What the demo claims, checked: tables and counts against the oracle, and a run that cost no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dev.demo.line import PIPELINES, DagRun
from dev.demo.oracle import COUNTED, Oracle
from dev.demo.rows import Comparison
from dev.demo.tables import read_table


@dataclass(frozen=True)
class WrongCount:
    """One number of a run record that the oracle contradicts."""

    day: int
    pipeline: str
    count: str
    expected: int
    found: int


def compare_tables(storage_root: Path, oracle: Oracle) -> list[Comparison]:
    """Every output table and quarantine against the rows the oracle expects."""
    return [Comparison(table, oracle.rows(table), read_table(storage_root, table)) for table in oracle.tables]


def wrong_counts(days: Sequence[DagRun], oracle: Oracle) -> list[WrongCount]:
    """Counts of the run records that differ from the oracle's; ``days`` are the runs of day 1, 2, ..."""
    wrong = []
    for number, dag_run in enumerate(days, start=1):
        for pipeline in PIPELINES:
            expected = oracle.counts(pipeline, number)
            record = dag_run.runs.get(pipeline)
            for count in COUNTED:
                found = getattr(record.counts, count) if record else 0
                if found != getattr(expected, count):
                    wrong.append(WrongCount(number, pipeline, count, getattr(expected, count), found))
    return wrong


def unbalanced(days: Sequence[DagRun]) -> list[str]:
    """Run ids whose rows read are not all accounted for."""
    return [run.run_id for day in days for run in day.runs.values() if not run.counts.balanced]


def cost_no_spark(idle: DagRun) -> bool:
    """Whether a run with nothing new succeeded, skipped its drain and left no run record."""
    return idle.state == "success" and idle.skipped_spark and not idle.runs
