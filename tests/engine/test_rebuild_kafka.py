"""A rebuild of a pipeline over Kafka reads its topics from the beginning, in batches as large as before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.errors import RefusedError
from drawdown.testing.servers.kafka import KafkaServer
from tests.support.rebuilds import (
    NAME,
    SPEC,
    comparison,
    end,
    event,
    live_version,
    next_version,
    rebuilt,
    rows,
    sums,
)
from tests.support.sandbox import Sandbox
from tests.support.spark import ROOT
from tests.support.topics import Topic

OF_A_TOPIC = SPEC.replace(
    "format: json\n    path: landing/events", "format: kafka\n    options: {subscribe: rebuilt}"
)
FIRST = [event("02T06:10", 1), event("02T06:20", 2, "b"), event("02T07:30", 4)]
SECOND = [event("02T08:10", 8, "b"), event("02T09:10", 16)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with KafkaServer(tmp_path_factory.mktemp("kafka"), state_dir=ROOT / ".drawdown") as running:
        yield running


@pytest.fixture
def sandbox(tmp_path: Path, spark: SparkSession, broker: KafkaServer) -> Sandbox:
    return Sandbox(tmp_path / "project", spark, kafka=broker.bootstrap_servers)


@pytest.mark.full
def test_a_topic_is_read_from_its_beginning_and_refused_when_that_has_expired(
    sandbox: Sandbox, broker: KafkaServer
) -> None:
    topic = Topic(broker, "rebuilt")
    live_version(sandbox, OF_A_TOPIC)
    for events in (FIRST, SECOND):
        topic.write(map(json.dumps, events))
        sandbox.run(NAME)
    next_version(sandbox, OF_A_TOPIC.replace("rebuilt}", "rebuilt, startingOffsets: latest}"))
    assert refusal(sandbox) == "rebuild.starts-latest"
    next_version(sandbox, OF_A_TOPIC)
    run = rebuilt(sandbox)
    assert [entry["rows"] for entry in run.progress if entry["rows"]] == [3, 2], "as large as the live one's"
    assert comparison(sandbox)["late"] == {"live": 0, "shadow": 0}
    end(sandbox, "discard")
    topic.expire(2)
    assert refusal(sandbox) == "rebuild.offsets-gone"
    assert rows(sandbox) == sums(FIRST + SECOND, "02T09", by_key=False)


def test_a_topic_that_was_made_again_does_not_have_what_was_read_however_many_offsets_it_has(
    sandbox: Sandbox, broker: KafkaServer
) -> None:
    topic = Topic(broker, "remade")
    spec = OF_A_TOPIC.replace("subscribe: rebuilt", "subscribe: remade")
    live_version(sandbox, spec)
    topic.write(map(json.dumps, FIRST))
    sandbox.run(NAME)
    topic.make_again()
    topic.write(map(json.dumps, FIRST + SECOND))
    next_version(sandbox, spec)
    assert refusal(sandbox) == "rebuild.offsets-gone"


def refusal(sandbox: Sandbox) -> str:
    with pytest.raises(RefusedError) as refused:
        rebuilt(sandbox)
    return refused.value.id
