"""Ids of runs sort by the time at which the runs began: Data Docs and listings rely on it."""

from __future__ import annotations

import re
import time

from drawdown.application.unstarted import new_run_id


def test_runs_of_one_second_sort_by_their_start() -> None:
    ids = []
    for _ in range(5):
        ids.append(new_run_id())
        time.sleep(0.002)
    assert sorted(ids) == ids
    assert all(re.fullmatch(r"\d{8}T\d{9}-[0-9a-f]{8}", run_id) for run_id in ids)
