"""The exactly-once Kafka sink through its faults: readers of committed records see each row once.

A batch is 60,000 rows in one file, two transactions: so a publish of two batches is four.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter

import pytest

from drawdown.fault_points import FAULT
from drawdown.testing.servers.kafka import KafkaServer
from tests.support.command_line import DRAWDOWN, drawdown
from tests.support.deaths import die, free_lease
from tests.support.frozen import frozen
from tests.support.sandbox import Sandbox
from tests.support.topics import Topic, records

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.sql
sink: {format: kafka, topic: TOPIC, publish: PUBLISH}
state: {partitions: 2}
"""
FILES = {
    "event_ddl": "id INT",
    "transform_sql": "SELECT CAST(id AS STRING) AS key, CAST(n AS STRING) AS value"
    " FROM (SELECT id, explode(sequence(1, 30000)) AS n FROM events)",
}
Rows = Counter[tuple[str | None, str]]


class Project:
    """One pipeline and its topic; each wave lands two files of two ids each."""

    def __init__(self, sandbox: Sandbox, broker: KafkaServer, name: str, publish: str = "audited") -> None:
        self.sandbox, self.name = sandbox, name
        self.topic, self.broker = Topic(broker, f"out-{name}", 2), broker
        spec = SPEC.replace("TOPIC", self.topic.name).replace("PUBLISH", publish)
        sandbox.pipeline(name, spec, **FILES)
        self.expected: Rows = Counter()

    def land(self, wave: int) -> None:
        for file in range(2):
            ids = [4 * wave + 2 * file, 4 * wave + 2 * file + 1]
            self.sandbox.land_json(f"landing/events/{wave}{file}.json", [{"id": i} for i in ids],
                                     mtime=10 * wave + file + 1)  # fmt: skip
            self.expected.update((str(i), str(n)) for i in ids for n in range(1, 30_001))

    def seen(self) -> Rows:
        return Counter((key, value) for _, key, value, _ in records(self.broker, self.topic.name))

    def settled(self) -> None:
        """Every row once, in the order of its key's rows; nothing is left to do, or waits."""
        seen, order = Rows(), dict[str | None, list[int]]()
        for _, key, value, _ in records(self.broker, self.topic.name):
            seen[key, value] += 1
            order.setdefault(key, []).append(int(value))
        assert seen == self.expected
        assert all(values == sorted(values) for values in order.values())
        assert self.sandbox.drain(self.name)[0].run is None
        assert not [path for path in self.sandbox.snapshot() if "/staged/part" in path]
        with self.sandbox.metastore() as metastore:
            assert metastore.holder_of(self.name) is None
            assert {batch.status for batch in metastore.batches(self.name, 1)} == {"published"}


@pytest.mark.full
@pytest.mark.fault("F07", "kafka")
def test_a_publish_dies_between_two_transactions_and_in_the_middle_of_one(
    kafka_sandbox: Sandbox, broker: KafkaServer
) -> None:
    project = Project(kafka_sandbox, broker, "dies")
    for wave, (moment, visible) in enumerate(
        {"after publish.file 1": 50_000, "after publish.send 4": 110_000}.items()
    ):
        before = project.expected.total()
        project.land(wave)
        die(kafka_sandbox, "dies", moment)
        seen = project.seen()
        assert seen.total() == before + visible, moment
        assert seen <= project.expected, moment
        run = kafka_sandbox.run("dies")
        assert run.counts.published == 120_000
        project.settled()


@pytest.mark.fault("F04", "kafka")
@pytest.mark.full
def test_a_batch_that_readers_see_a_part_of_or_all_is_sent_once(
    kafka_sandbox: Sandbox, broker: KafkaServer
) -> None:
    project = Project(kafka_sandbox, broker, "direct", "direct")
    for wave, moment in enumerate(["after publish.file 1", "after batch.show 2"]):
        project.land(wave)
        die(kafka_sandbox, "direct", moment)
        assert project.seen() <= project.expected, moment
        kafka_sandbox.run("direct")
        project.settled()


@pytest.mark.fault("F07", "kafka")
def test_what_a_release_has_begun_to_show_cannot_be_discarded_and_is_completed(
    kafka_sandbox: Sandbox, broker: KafkaServer
) -> None:
    project = Project(kafka_sandbox, broker, "held")
    quality = kafka_sandbox.root / "include/pipelines/held/quality.yaml"
    quality.write_text(
        "expectations: [{type: expect_table_row_count_to_be_between, kwargs: {max_value: 1}}]\n"
    )
    project.land(0)
    error = kafka_sandbox.drain("held")[0].error
    assert error is not None
    assert error.id == "audit.fail"
    assert not project.seen()
    words = ["release", "held", "--why", "the check was wrong"]
    fault = {**os.environ, FAULT: "kill after publish.file 1"}
    apart = {"cwd": kafka_sandbox.root, "env": fault, "start_new_session": True}
    died = subprocess.run([*DRAWDOWN, *words], check=False, **apart)
    assert died.returncode == -signal.SIGKILL
    assert project.seen().total() == 50_000
    free_lease(kafka_sandbox)
    refused = drawdown(kafka_sandbox.root, "discard", "held", "--why", "no")
    assert (refused.returncode, "slice.visible" in refused.stderr) == (3, True), refused.stderr
    assert drawdown(kafka_sandbox.root, *words).returncode == 0
    quality.unlink()
    # It notes that the first release has died.
    kafka_sandbox.run("held")
    project.settled()


@pytest.mark.fault("F10", "kafka")
def test_a_holder_that_sleeps_in_a_transaction_is_fenced(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    project = Project(kafka_sandbox, broker, "sleeps")
    project.land(0)
    with frozen(kafka_sandbox, "sleeps", "after publish.send 2") as sleeper:
        free_lease(kafka_sandbox)
        kafka_sandbox.run("sleeps")
        code, printed = sleeper.wake()
    assert code == 3, printed
    assert "lease.lost" in printed
    project.settled()


@pytest.mark.fault("F32", "kafka")
def test_the_broker_restarts_in_the_middle_of_a_publish(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    project = Project(kafka_sandbox, broker, "restarts")
    project.land(0)
    with frozen(kafka_sandbox, "restarts", "after publish.send 2") as sleeper:
        broker.stop()
        broker.start()
        code, printed = sleeper.wake()
    assert code == 0 or "sink.broker" in printed, printed
    if code:
        kafka_sandbox.run("restarts")
    project.settled()


@pytest.mark.fault("F32", "kafka")
@pytest.mark.full
def test_the_broker_is_away_when_the_slice_could_be_sent(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    project = Project(kafka_sandbox, broker, "away")
    project.land(0)
    with frozen(kafka_sandbox, "away", "before publish.commit") as sleeper:
        broker.stop()
        code, printed = sleeper.wake()
    broker.start()
    assert code == 5, printed
    assert "sink.broker" in printed
    assert "Traceback" not in printed
    assert not project.seen()
    kafka_sandbox.run("away")
    project.settled()
