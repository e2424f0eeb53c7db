"""A rebuild of a pipeline over Kafka reads its topics from the beginning, in batches as large as before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.errors import RefusedError
from drawdown.testing.servers.kafka import KafkaServer
from tests.support.rebuilds import FIRST, NAME, SECOND, SPEC, Hourly, sums
from tests.support.topics import Topic

OF_A_TOPIC = SPEC.replace(
    "format: json\n    path: landing/events", "format: kafka\n    options: {subscribe: rebuilt}"
)


@pytest.fixture
def hourly(tmp_path: Path, spark: SparkSession, broker: KafkaServer) -> Hourly:
    return Hourly(tmp_path / "project", spark, kafka=broker.bootstrap_servers)


@pytest.mark.full
def test_a_topic_is_read_from_its_beginning_and_refused_when_that_has_expired(
    hourly: Hourly, broker: KafkaServer
) -> None:
    topic = Topic(broker, "rebuilt")
    hourly.live_version(OF_A_TOPIC)
    for events in (FIRST, SECOND):
        topic.write(map(json.dumps, events))
        hourly.run(NAME)
    hourly.next_version(OF_A_TOPIC.replace("rebuilt}", "rebuilt, startingOffsets: latest}"))
    assert refusal(hourly) == "rebuild.starts-latest"
    hourly.next_version(OF_A_TOPIC)
    run = hourly.rebuilt()
    assert [entry["rows"] for entry in run.progress if entry["rows"]] == [3, 2], "as large as the live one's"
    assert hourly.comparison()["late"] == {"live": 0, "shadow": 0}
    hourly.end("discard")
    topic.expire(2)
    assert refusal(hourly) == "rebuild.offsets-gone"
    assert hourly.rows() == sums(FIRST + SECOND, "02T09", by_key=False)


def test_a_topic_that_was_made_again_does_not_have_what_was_read_however_many_offsets_it_has(
    hourly: Hourly, broker: KafkaServer
) -> None:
    topic = Topic(broker, "remade")
    spec = OF_A_TOPIC.replace("subscribe: rebuilt", "subscribe: remade")
    hourly.live_version(spec)
    topic.write(map(json.dumps, FIRST))
    hourly.run(NAME)
    topic.make_again()
    topic.write(map(json.dumps, FIRST + SECOND))
    hourly.next_version(spec)
    assert refusal(hourly) == "rebuild.offsets-gone"


def refusal(hourly: Hourly) -> str:
    with pytest.raises(RefusedError) as refused:
        hourly.rebuilt()
    return refused.value.id
