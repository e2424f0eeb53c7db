"""The pipeline that replays are tested on: sums per hour and key, replayed by days."""

from __future__ import annotations

from drawdown.application import Application
from drawdown.metastore.records import Run
from drawdown.spec import load_pipeline
from drawdown.spec.interval import Interval
from tests.support.workspace import Workspace

REPLAYED = """
sources:
  events:
    format: json
    path: landing/events
    schema: events.ddl
    watermark: {column: at, delay: 0 seconds}
transform: transform.sql
sink: {format: delta, path: tables/hourly, schema: hourly.ddl, time_column: hour}
state: {partitions: 2}
replay: {interval: 1 day}
"""


def replayed(workspace: Workspace, start: str, end: str, name: str = "hourly") -> Run:
    """The record of the replay of one interval; raises its error."""
    with workspace.metastore() as metastore:
        application = Application(workspace.project, metastore, session=workspace.spark)
        pipeline = load_pipeline(workspace.project, name)
        (report,) = application.replay(pipeline, [Interval.parse(start, end)])
    if report.error is not None:
        raise report.error
    assert report.run is not None
    return report.run
