"""What many runs leave behind stays bounded: small versions of tests/benchmarks/upkeep_growth.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.upkeep_growth import growth

A_DAY, VACUUM_DAYS = 4, 7


def test_sixty_runs_leave_the_files_of_a_week(tmp_path: Path) -> None:
    sizes = list(growth(tmp_path / "project", 60, a_day=A_DAY))
    # Besides: what a compaction made of them, and the day that is just over.
    assert max(size.data_files for size in sizes) <= A_DAY * (VACUUM_DAYS + 2) + VACUUM_DAYS
    assert sizes[-1].runs == 60


@pytest.mark.full
def test_records_and_checkpoints_of_many_runs_grow_no_further(tmp_path: Path) -> None:
    keeps = "upkeep: {records: 10 days}\n"
    sizes = {size.runs: size for size in growth(tmp_path / "project", 160, a_day=2, more=keeps)}
    half, whole = sizes[140], sizes[160]
    assert whole.table_files <= half.table_files + 10, (half, whole)
    assert whole.other_files <= half.other_files
    assert whole.records <= half.records + 4, (half, whole)
