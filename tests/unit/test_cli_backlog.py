"""The bar's arithmetic: how far a batch gets, in the unit in which its source's backlog is counted."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from drawdown.cli.shown.backlog import progress_of
from drawdown.cli.shown.plan import amounts
from drawdown.metastore.records import Batch, Checkpoint
from drawdown.plan.preflight import Preflight
from drawdown.sources.findings import backlog_size, waiting_text
from drawdown.storage import Storage


@pytest.mark.parametrize(
    ("backlog", "size"),
    [
        ({"files": 3, "bytes": 10, "too_old": 1}, (3, "files")),
        ({"offsets": {"a": 5, "b": 7}}, (12, "offsets")),
        ({"versions": 2}, (2, "versions")),
        ({}, None),
    ],
)
def test_a_backlog_has_one_size_or_none(backlog: dict[str, Any], size: tuple[int, str] | None) -> None:
    assert backlog_size(backlog) == size


def test_what_waits_is_said_per_source_and_only_where_something_does() -> None:
    backlog = {
        "a": {"files": 1_200, "bytes": 9},
        "b": {"offsets": {"t": 0}},
        "c": {},
        "d": {"offsets": {"t": 3}},
    }
    assert waiting_text(backlog) == "a 1,200 files, d 3 offsets"


@pytest.mark.parametrize(
    ("backlog", "said"),
    [
        ({"files": 1, "bytes": 1_122, "too_old": 0}, "1 file, 1,122 bytes"),
        (
            {"files": 0, "bytes": 0, "too_old": 1, "rewritten": 2},
            "0 files, 0 bytes, 1 file too old, 2 files rewritten",
        ),
        ({"offsets": {"a": 5, "b": 7}}, "5 of a + 7 of b offsets"),
        ({"offsets": {}}, "0 offsets"),
        ({"versions": 1}, "1 version"),
        ({}, "unknown"),
    ],
)
def test_a_plan_says_what_a_run_would_read(backlog: dict[str, Any], said: str) -> None:
    assert amounts(Preflight(True, [], {"s": backlog})) == {"s": said}


@pytest.mark.parametrize(
    ("start", "end", "steps"),
    [
        (None, {"t": {"0": 4, "1": 6}}, 10),
        ({"t": {"0": 4}}, {"t": {"0": 5, "1": 6}}, 7),
        (None, {"reservoirVersion": 3}, 3),
        ({"reservoirVersion": 3}, {"reservoirVersion": 3}, 0),
        (None, None, 0),
        ({"logOffset": 1}, {"logOffset": 1}, 0),
    ],
)
def test_a_batch_advances_by_what_it_reads(tmp_path: Path, start: Any, end: Any, steps: int) -> None:
    checkpoint = Checkpoint("p", 1, "checkpoint", None, {"source_order": ["s"]}, datetime.now(UTC))
    batch = Batch("p", 1, 0, "r", 1, offsets_from=[] if start is None else [start], offsets_to=[end])
    assert progress_of(Storage(str(tmp_path)), checkpoint, batch) == {"s": steps}
