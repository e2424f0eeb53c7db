"""Drains into Kafka: exactly once beside Spark's own writer, in one process and session.

python -m tests.benchmarks.kafka_sink [ROWS ...]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

from drawdown.testing.servers.kafka import KafkaServer
from tests.benchmarks.comparison import Comparison, in_turns
from tests.benchmarks.page import present
from tests.support.sandbox import Sandbox
from tests.support.spark import ROOT, start_session
from tests.support.topics import Topic

SIZES = (50_000, 200_000, 800_000)
RIVAL = "Spark's own writer, at least once"
SPEC = """
sources:
  events: {format: json, path: landing/NAME, schema: event.ddl}
transform: transform.sql
sink: {format: kafka, topic: NAME, delivery: DELIVERY}
state: {partitions: 2}
"""
SQL = """
    SELECT CAST(n % 1000 AS STRING) AS key, to_json(struct(id, n, 'some text of a row' AS text)) AS value
    FROM (SELECT id, explode(sequence(1, {rows} DIV 2)) AS n FROM events)
"""


def main(*sizes: int) -> int:
    session = start_session()
    with (
        tempfile.TemporaryDirectory() as folder,
        KafkaServer(Path(folder) / "kafka", state_dir=ROOT / ".drawdown") as broker,
    ):
        found = [_compare(session, broker, Path(folder) / str(rows), rows) for rows in sizes]
    session.stop()
    return present("kafka_sink", found)


def _compare(session: SparkSession, broker: KafkaServer, folder: Path, rows: int) -> Comparison:
    sandbox = Sandbox(folder, session, kafka=broker.bootstrap_servers)
    # Named by the rows too: a ledger belongs to the pipeline of its name, and the broker is the same.
    names = {delivery: f"{delivery}_{rows}" for delivery in ("exactly_once", "at_least_once")}
    for delivery, name in names.items():
        Topic(broker, name, 2)
        spec = SPEC.replace("DELIVERY", delivery).replace("NAME", name)
        sandbox.pipeline(name, spec, event_ddl="id INT", transform_sql=SQL.format(rows=rows))

    def drained(delivery: str, turn: int) -> float:
        name = names[delivery]
        for id in (0, 1):  # a file is a task
            sandbox.land_json(f"landing/{name}/{turn}-{id}.json", [{"id": id}])
        begun = time.monotonic()
        run = sandbox.run(name)
        assert run.counts.staged == rows
        return time.monotonic() - begun

    pairs = in_turns(lambda turn: drained("exactly_once", turn), lambda turn: drained("at_least_once", turn))
    ours, rival = ([pair[way] for pair in pairs] for way in (0, 1))
    return Comparison(f"exactly once into Kafka, {rows:,} rows", RIVAL, "s", ours, rival)


if __name__ == "__main__":
    sys.exit(main(*(map(int, sys.argv[1:]) if sys.argv[1:] else SIZES)))
