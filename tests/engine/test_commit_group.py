"""`commit_group:`: a consumer group on a real broker shows how far rows are published; it fails no run."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from drawdown.errors import SpecError
from drawdown.held.decide import Decision, decide
from drawdown.metastore.records import Run
from drawdown.processes.ports import free_ports
from drawdown.spec import load_pipeline, load_pipelines
from drawdown.testing.servers.kafka import KafkaServer
from drawdown.workspace import Workspace
from tests.support.sandbox import Sandbox
from tests.support.spark import ROOT
from tests.support.topics import Topic
from tests.support.waiting import until

SPEC = """
sources:
  readings:
    format: kafka
    value: json
    schema: reading.ddl
    commit_group: {group}
    options: {{subscribe: {topic}}}
transform: transform.sql
sink: {{format: delta, path: tables/{topic}, schema: reading.ddl, publish: audited}}
state: {{partitions: 1}}
"""
FILES = {"reading_ddl": "id BIGINT", "transform_sql": "SELECT id FROM readings"}
NO_TWOS = """
expectations:
  - {type: expect_column_values_to_not_be_in_set, kwargs: {column: id, value_set: [2]}}
"""


class BrokerWithRights(KafkaServer):
    """Everybody may do what no rule forbids."""

    def _write_settings(self, port: int, controller: int) -> Path:
        settings = super()._write_settings(port, controller)
        with settings.open("a") as more:
            more.write("authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n")
            more.write("allow.everyone.if.no.acl.found=true\n")
        return settings


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    [port] = free_ports(1)
    folder = tmp_path_factory.mktemp("kafka")
    with BrokerWithRights(folder, port, state_dir=ROOT / ".drawdown") as running:
        # A new broker makes its topic of groups when the first is asked for, and coordinates them only then.
        until(lambda: coordinates(running), 120)
        yield running


def coordinates(broker: KafkaServer) -> bool:
    try:
        committed(broker, "any", "any")
    except KafkaException as error:
        if error.args[0].code() not in (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE):
            raise
        return False
    return True


def numbers(*ids: int) -> list[str]:
    return [json.dumps({"id": number}) for number in ids]


def committed(broker: KafkaServer, group: str, topic: str) -> dict[int, int]:
    """The group's offsets by partition, as any lag tool asks for them."""
    asking = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    try:
        found = asking.committed([TopicPartition(topic, number) for number in range(2)], timeout=60)
    finally:
        asking.close()
    return {each.partition: each.offset for each in found if each.offset >= 0}


def decided(sandbox: Sandbox, name: str, choice: Literal["release", "discard"], run_id: str) -> Run:
    with sandbox.metastore() as metastore:
        decide(
            Workspace(sandbox.project, metastore),
            load_pipeline(sandbox.project, name),
            Decision(choice, run_id, "here", by="ada", why="looked at"),
        )
        run = metastore.run(run_id)
    assert run is not None
    return run


def last_run(sandbox: Sandbox, name: str) -> Run:
    with sandbox.metastore() as metastore:
        return metastore.runs(name, limit=1)[0]


@pytest.mark.capability("SEE-16")
def test_a_group_stands_where_what_was_published_ends(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    group = "drawdown.published"
    kafka_sandbox.pipeline(
        "published", SPEC.format(group=group, topic="published"), quality_yaml=NO_TWOS, **FILES
    )
    topic = Topic(broker, "published", partitions=2)
    topic.write(numbers(1, 3))
    topic.write([*numbers(5), "{broken"], partition=1)
    assert kafka_sandbox.run("published").notices == []
    assert committed(broker, group, "published") == {0: 2, 1: 2}

    topic.write(numbers(2))
    assert kafka_sandbox.drain("published")[0].error is not None
    topic.write(numbers(7), partition=1)
    kafka_sandbox.drain("published")
    assert committed(broker, group, "published") == {0: 2, 1: 2}, (
        "a held slice, and one behind it, are not published"
    )

    assert decided(kafka_sandbox, "published", "release", "released").notices == []
    assert committed(broker, group, "published") == {0: 3, 1: 3}
    assert kafka_sandbox.delta("tables/published") == [(1,), (2,), (3,), (5,), (7,)]

    topic.write(numbers(2))
    kafka_sandbox.drain("published")
    decided(kafka_sandbox, "published", "discard", "discarded")
    assert committed(broker, group, "published") == {0: 4, 1: 3}, "nobody waits for rows that were discarded"


@pytest.mark.capability("SEE-16")
def test_a_broker_that_refuses_the_commit_fails_no_run(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    topics = {name: Topic(broker, name) for name in ("taken", "denied")}
    for name, topic in topics.items():
        kafka_sandbox.pipeline(name, SPEC.format(group=f"drawdown.{name}", topic=name), **FILES)
        topic.write(numbers(1))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    rule = AclBinding(
        ResourceType.GROUP, "drawdown.denied", ResourcePatternType.LITERAL,
        "User:ANONYMOUS", "*", AclOperation.ALL, AclPermissionType.DENY,
    )  # fmt: skip
    for made in admin.create_acls([rule]).values():
        made.result(30)
    member = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "drawdown.taken"})
    try:
        member.subscribe(["taken"])
        deadline = time.monotonic() + 60
        while not member.assignment():
            assert time.monotonic() < deadline
            member.poll(0.2)
        for name, why in (("taken", "member"), ("denied", "authorization failed")):
            run = kafka_sandbox.run(name)
            [notice] = run.notices
            assert (run.state, run.counts.published) == ("succeeded", 1)
            assert (notice["id"], notice["about"]) == ("source.group-offsets", "readings")
            assert why in notice["what"].lower(), notice
            assert f"drawdown.{name}" in notice["what"]
    finally:
        member.close()

    topics["taken"].write(numbers(4))
    kafka_sandbox.run("taken")
    assert committed(broker, "drawdown.taken", "taken") == {0: 2}, "the next publish commits for both"


@pytest.mark.full
@pytest.mark.capability("SEE-16")
def test_a_broker_that_is_away_delays_a_release_by_two_seconds_at_most(
    kafka_sandbox: Sandbox, broker: KafkaServer
) -> None:
    kafka_sandbox.pipeline(
        "away", SPEC.format(group="drawdown.away", topic="away"), quality_yaml=NO_TWOS, **FILES
    )
    Topic(broker, "away").write(numbers(2))
    assert kafka_sandbox.drain("away")[0].error is not None
    broker.stop()
    try:
        began = time.monotonic()
        run = decided(kafka_sandbox, "away", "release", "released-away")
        assert time.monotonic() - began < 4
    finally:
        broker.start()
    assert run.state == "succeeded"
    assert [notice["id"] for notice in run.notices] == ["source.group-offsets"]
    assert kafka_sandbox.delta("tables/away") == [(2,)]


@pytest.mark.capability("SEE-16")
def test_two_sources_cannot_commit_to_one_group(sandbox: Sandbox) -> None:
    for name in ("one", "two"):
        sandbox.pipeline(name, SPEC.format(group="drawdown.shared", topic=name), **FILES)
    with pytest.raises(SpecError) as caught:
        load_pipelines(sandbox.project)
    assert caught.value.id == "spec.shared-group"
    assert "one" in caught.value.what
    assert "two" in caught.value.what


@pytest.mark.capability("SEE-16")
@pytest.mark.parametrize(
    ("changes", "error_id"),
    [
        (
            {
                "format: kafka": "format: json",
                "value: json": "path: landing/one",
                "options: {subscribe: one}": "options: {}",
            },
            "spec.no-effect",
        ),
        ({"drawdown.one": '"a group"'}, "spec.wrong-value"),
    ],
)
def test_a_group_that_can_take_no_offsets_is_refused(
    sandbox: Sandbox, changes: dict[str, str], error_id: str
) -> None:
    spec = SPEC.format(group="drawdown.one", topic="one")
    for before, after in changes.items():
        spec = spec.replace(before, after)
    with pytest.raises(SpecError) as caught:
        sandbox.pipeline("one", spec, **FILES)
    assert caught.value.id == error_id
