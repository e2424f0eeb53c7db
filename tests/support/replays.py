"""The pipeline that replays are tested on: sums per hour and key, replayed by days."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

from drawdown.application import SparkApplication
from drawdown.metastore.records import Run
from drawdown.spec import load_pipeline
from drawdown.values.interval import Interval
from drawdown.workspace import Workspace
from tests.support.sandbox import Sandbox

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

FIRST = datetime(2024, 1, 1, tzinfo=UTC)
DAYS = 10


def drain_days(sandbox: Sandbox, spec: str = REPLAYED) -> Counter[tuple[datetime, str]]:
    """Ten days in two runs, most events of the second one too late; what all of them sum up to."""
    sandbox.pipeline(
        "hourly",
        spec,
        events_ddl="at TIMESTAMP, k STRING",
        hourly_ddl="hour TIMESTAMP, k STRING, total BIGINT",
        transform_sql="SELECT window.start AS hour, k, count(*) AS total FROM events"
        " GROUP BY window(at, '1 hour'), k",
    )
    chance = random.Random(1)
    expected: Counter[tuple[datetime, str]] = Counter()
    for wave in range(2):
        minutes = [chance.randrange(DAYS * 24 * 60) for _ in range(60)] + [DAYS * 24 * 60 + wave]
        events = [(FIRST + timedelta(minutes=each), chance.choice("ab")) for each in minutes]
        rows = [{"at": at.isoformat(), "k": k} for at, k in events]
        sandbox.land_json(f"landing/events/{wave}.json", rows)
        sandbox.run("hourly")
        expected.update((at.replace(minute=0), k) for at, k in events if at < FIRST + timedelta(days=DAYS))
    return expected


def replayed(sandbox: Sandbox, start: str, end: str, name: str = "hourly") -> Run:
    """The record of the replay of one interval; raises its error."""
    with sandbox.metastore() as metastore:
        application = SparkApplication(Workspace(sandbox.project, metastore), session=sandbox.spark)
        pipeline = load_pipeline(sandbox.project, name)
        (report,) = application.replay(pipeline, [Interval.parse(start, end)])
    if report.error is not None:
        raise report.error
    assert report.run is not None
    return report.run
