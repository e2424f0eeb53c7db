"""Whether a backlog fits one drain: by the limit per trigger, the bounds, and the time that batches took."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from drawdown.metastore.records import Run
from drawdown.plan.drain_fit import DrainFit, drain_fit
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl, options: {OPTIONS}}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: event.ddl}
drain: {DRAIN}
"""


def judge(folder: Path, drain: str, backlog: dict[str, Any], took: list[int], options: str = "") -> DrainFit:
    pipeline = Sandbox(folder).pipeline(
        "events",
        SPEC.replace("DRAIN", drain).replace("OPTIONS", options),
        event_ddl="id INT",
        transform_sql="SELECT * FROM events",
    )
    entries = [{"rows": 1, "duration_ms": {"triggerExecution": millis}} for millis in took]
    idle = {"rows": 0, "duration_ms": {"triggerExecution": 1}}
    run = Run("r1", "events", progress=[*entries, idle])
    return drain_fit(pipeline, {"events": backlog}, [run])


@pytest.mark.parametrize(
    ("drain", "took", "fits", "batches", "seconds"),
    [
        ("max_batches: 4", [], "yes", 4, None),
        ("max_batches: 3", [], "no", 4, None),
        ("max_duration: 1 minute", [], "unknown", 4, None),
        ("max_duration: 1 minute", [10_000, 12_000, 90_000], "yes", 4, 48.0),
        ("max_duration: 40 seconds", [10_000, 12_000, 90_000], "yes", 4, 48.0),
        ("max_duration: 36 seconds", [10_000, 12_000, 90_000], "no", 4, 48.0),
        ("max_duration: null, max_batches: null", [], "yes", 4, None),
    ],
)
def test_files_are_judged_by_their_limit_and_the_median_batch(
    tmp_path: Path, drain: str, took: list[int], fits: str, batches: int, seconds: float | None
) -> None:
    found = judge(tmp_path, drain, {"files": 7, "bytes": 70}, took, "maxFilesPerTrigger: 2")
    assert (found.fits, found.batches, found.seconds) == (fits, batches, seconds)
    assert found.why


def test_without_a_limit_all_files_are_one_batch_and_none_are_none(tmp_path: Path) -> None:
    assert judge(tmp_path / "a", "max_batches: 1", {"files": 7, "bytes": 70}, []).batches == 1
    assert judge(tmp_path / "b", "max_batches: 1", {"files": 0, "bytes": 0}, []).batches == 0


@pytest.mark.parametrize("backlog", [{}, {"versions": 3}])
def test_what_only_spark_can_tell_is_said_to_be_unknown(tmp_path: Path, backlog: dict[str, int]) -> None:
    found = judge(tmp_path, "max_batches: 9", backlog, [1_000])
    assert (found.fits, found.batches) == ("unknown", None)
    assert "events" in found.why
