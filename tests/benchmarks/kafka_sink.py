"""Rows a second into Kafka: exactly once against Spark's own writer, in one process and session.

``python -m tests.benchmarks.kafka_sink [ROWS]``: drains of the same rows take turns, after one to warm up.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from drawdown.machine.broker import Broker
from tests.support.spark import ROOT, start_session
from tests.support.topics import Topic
from tests.support.workspace import Workspace

ROUNDS = 5
SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl}
transform: transform.sql
sink: {format: kafka, topic: DELIVERY, delivery: DELIVERY}
state: {partitions: 2}
"""
SQL = """
    SELECT CAST(n % 1000 AS STRING) AS key, to_json(struct(id, n, 'some text of a row' AS text)) AS value
    FROM (SELECT id, explode(sequence(1, {rows} DIV 2)) AS n FROM events)
"""


def main(rows: int) -> None:
    session = start_session()
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker(Path(folder) / "kafka", state_dir=ROOT / ".drawdown") as broker,
    ):
        workspace = Workspace(Path(folder) / "project", session, kafka=broker.bootstrap_servers)
        seconds: dict[str, list[float]] = {"exactly_once": [], "at_least_once": []}
        for delivery in seconds:
            Topic(broker, delivery, 2)
            spec = SPEC.replace("DELIVERY", delivery)
            workspace.pipeline(delivery, spec, event_ddl="id INT", transform_sql=SQL.format(rows=rows))
        for round in range(ROUNDS + 1):
            workspace.land_json(f"landing/events/{round}.json", [{"id": 0}], mtime=10 * round + 1)
            workspace.land_json(f"landing/events/{round}b.json", [{"id": 1}], mtime=10 * round + 2)
            for delivery, taken in seconds.items():
                started = time.monotonic()
                run = workspace.run(delivery)
                taken.append(time.monotonic() - started)
                assert run.counts.staged == rows
    session.stop()
    typical = {delivery: median(taken[1:]) for delivery, taken in seconds.items()}
    for delivery, taken in typical.items():
        print(f"{delivery}: {taken:.2f} s a drain of {rows:,} rows, {rows / taken:,.0f} rows/s")
    print(f"ratio {typical['at_least_once'] / typical['exactly_once']:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400_000)
