"""A pipeline that has run once and is then changed: what `drawdown plan` says of the change."""

from __future__ import annotations

from typing import Any

from drawdown.errors import RefusedError
from drawdown.metastore.records import Run
from tests.support.refusals import planned, refused
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  events:
    {{format: json, path: landing/events, schema: event.ddl,
      watermark: {{column: at, delay: 10 minutes}}{source}}}
transform: transform.{suffix}
sink: {{{sink}}}
state: {{partitions: 2}}
"""
EVENT = "at TIMESTAMP, k STRING, j STRING, v BIGINT"


def write(
    sandbox: Sandbox,
    transform: str,
    *,
    sink: str = "format: parquet, path: tables/out",
    source: str = "",
    suffix: str = "sql",
    **files: str,
) -> None:
    """The pipeline `changed`, made or changed."""
    spec = SPEC.format(sink=sink, source=source, suffix=suffix)
    sandbox.pipeline("changed", spec, **{"event_ddl": EVENT, f"transform_{suffix}": transform, **files})


def land(sandbox: Sandbox, file: str, *events: tuple[str, str, int], at: str = "10:00") -> None:
    """One file of events (k, j, v)."""
    rows = [{"at": f"2024-01-01T{at}:00Z", "k": k, "j": j, "v": v} for k, j, v in events]
    sandbox.land_json(f"landing/events/{file}.json", rows)


def land_and_run(sandbox: Sandbox, file: str, *events: tuple[str, str, int], at: str = "10:00") -> Run:
    land(sandbox, file, *events, at=at)
    return sandbox.run("changed")


def change_refused(sandbox: Sandbox) -> str:
    """The sentence of `checkpoint.changed`, said by plan and by a drain that touched nothing."""
    error = refused(sandbox, "changed", "checkpoint.changed", RefusedError)
    assert "undo the change" in error.do
    return error.what


def change_allowed(sandbox: Sandbox) -> dict[str, str]:
    """What plan says of each allowed change, by what it is about; nothing is refused."""
    plan = planned(sandbox, "changed")
    assert plan.errors == ()
    return {v.about: v.what for v in plan.verdicts if v.id == "checkpoint.change-allowed"}


def written(sandbox: Sandbox, *columns: str, path: str = "tables/out") -> list[tuple[Any, ...]]:
    """Rows of a file sink, sorted, as a Spark reader sees them."""
    assert sandbox.spark is not None
    frame = sandbox.spark.read.option("mergeSchema", True).parquet(str(sandbox.storage / path))
    return sorted((tuple(row) for row in frame.select(*columns).collect()), key=str)
