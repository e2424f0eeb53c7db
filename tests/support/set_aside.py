"""A pipeline with rows in its quarantine: an open window, and rows that a corrected rule lets into it."""

from __future__ import annotations

import json
from typing import Any

from drawdown.application import SparkApplication
from drawdown.metastore.records import Run
from drawdown.quarantine.request import ReplayRequest
from drawdown.quarantine.row_states import Choice, SetAside, set_aside
from drawdown.spec import load_pipeline
from drawdown.workspace import Workspace
from tests.support.sandbox import Sandbox

NAME = "hourly"
SPEC = """
sources:
  events:
    format: csv
    path: landing/events
    schema: events.ddl
    options: {header: true}
    watermark: {column: at, delay: 1 minute}
transform: transform.sql
sink: {format: delta, path: tables/hourly, schema: hourly.ddl}
state: {partitions: 2}
"""
HOURLY = """
    SELECT window.start AS hour, count(*) AS n, sum(delay) AS delay
    FROM (SELECT window(at, '1 hour') AS window, delay FROM events) GROUP BY window
"""
FILES = {
    "events_ddl": "id INT, at TIMESTAMP, delay INT",
    "hourly_ddl": "hour TIMESTAMP, n BIGINT, delay BIGINT",
    "transform_sql": HOURLY,
}
STRICT = "rules: [{name: small, check: id < 90, on_fail: quarantine}]\n"
CORRECTED = "rules: [{name: small, check: id < 100, on_fail: quarantine}]\n"


def fill(sandbox: Sandbox) -> None:
    """The window from 10:00 is open with two rows; ids 95, 96, 150 are set aside, and one broken delay."""
    write(sandbox, STRICT)
    land(sandbox, "a", "1,2024-01-01T10:00:00Z,5", "2,2024-01-01T10:10:00Z,5")
    land(
        sandbox,
        "b",
        "95,2024-01-01T10:20:00Z,7",
        "96,2024-01-01T10:25:00Z,7",
        "150,2024-01-01T10:26:00Z,7",
        "4,2024-01-01T10:27:00Z,3.0",
    )
    assert sandbox.run(NAME).counts.fed == 2


def write(sandbox: Sandbox, quality: str) -> None:
    sandbox.pipeline(NAME, SPEC, **FILES, quality_yaml=quality)


def land(sandbox: Sandbox, name: str, *rows: str) -> None:
    sandbox.land(f"landing/events/{name}.csv", ["id,at,delay", *rows])


def replay(
    sandbox: Sandbox,
    name: str = NAME,
    *,
    patch: tuple[str, ...] = (),
    with_late: bool = False,
    dag_run_id: str = "",
    **choice: Any,
) -> Run:
    """As the command does, or a run of the pipeline's DAG; raises its error."""
    project = sandbox.project
    with sandbox.metastore() as metastore:
        origin = {"dag_run_id": dag_run_id} if dag_run_id else {}
        application = SparkApplication(Workspace(project, metastore), session=sandbox.spark, origin=origin)
        asked = ReplayRequest(Choice(**choice), patch, with_late)
        report = application.replay_set_aside(load_pipeline(project, name), asked)
    if report.error is not None:
        raise report.error
    assert report.run is not None
    return report.run


def states(sandbox: Sandbox) -> dict[str, str]:
    """By id, ``broken`` for what could not be parsed."""
    return {_name(row): row.state for row in rows(sandbox)}


def rows(sandbox: Sandbox) -> list[SetAside]:
    project = sandbox.project
    with sandbox.metastore() as metastore:
        return set_aside(Workspace(project, metastore), load_pipeline(project, NAME))


def closed(sandbox: Sandbox) -> list[tuple[int, int, int]]:
    """Of each closed window its hour of the day, its rows, and the sum of their delays."""
    return [(hour.hour, n, delay) for hour, n, delay in sandbox.delta("tables/hourly")]


def _name(row: SetAside) -> str:
    payload = str(row.payload)
    return str(json.loads(payload)["id"]) if payload.startswith("{") else "broken"
