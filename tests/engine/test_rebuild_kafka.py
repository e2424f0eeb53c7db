"""A rebuild of a pipeline over Kafka reads its topics from the beginning, in batches as large as before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.errors import RefusedError
from drawdown.machine.broker import Broker
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
from tests.support.spark import ROOT
from tests.support.topics import Topic
from tests.support.workspace import Workspace

OF_A_TOPIC = SPEC.replace(
    "format: json\n    path: landing/events", "format: kafka\n    options: {subscribe: rebuilt}"
)
FIRST = [event("02T06:10", 1), event("02T06:20", 2, "b"), event("02T07:30", 4)]
SECOND = [event("02T08:10", 8, "b"), event("02T09:10", 16)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("kafka"), state_dir=ROOT / ".drawdown") as running:
        yield running


@pytest.fixture
def workspace(tmp_path: Path, spark: SparkSession, broker: Broker) -> Workspace:
    return Workspace(tmp_path / "project", spark, kafka=broker.bootstrap_servers)


def test_a_topic_is_read_from_its_beginning_and_refused_when_that_has_expired(
    workspace: Workspace, broker: Broker
) -> None:
    topic = Topic(broker, "rebuilt")
    live_version(workspace, OF_A_TOPIC)
    for events in (FIRST, SECOND):
        topic.write(map(json.dumps, events))
        workspace.run(NAME)
    next_version(workspace, OF_A_TOPIC.replace("rebuilt}", "rebuilt, startingOffsets: latest}"))
    assert refusal(workspace) == "rebuild.starts-latest"
    next_version(workspace, OF_A_TOPIC)
    run = rebuilt(workspace)
    assert [entry["rows"] for entry in run.progress if entry["rows"]] == [3, 2], "as large as the live one's"
    assert comparison(workspace)["late"] == {"live": 0, "shadow": 0}
    end(workspace, "discard")
    topic.expire(2)
    assert refusal(workspace) == "rebuild.offsets-gone"
    assert rows(workspace) == sums(FIRST + SECOND, "02T09", by_key=False)


def test_a_topic_that_was_made_again_does_not_have_what_was_read_however_many_offsets_it_has(
    workspace: Workspace, broker: Broker
) -> None:
    topic = Topic(broker, "remade")
    spec = OF_A_TOPIC.replace("subscribe: rebuilt", "subscribe: remade")
    live_version(workspace, spec)
    topic.write(map(json.dumps, FIRST))
    workspace.run(NAME)
    topic.make_again()
    topic.write(map(json.dumps, FIRST + SECOND))
    next_version(workspace, spec)
    assert refusal(workspace) == "rebuild.offsets-gone"


def refusal(workspace: Workspace) -> str:
    with pytest.raises(RefusedError) as refused:
        rebuilt(workspace)
    return refused.value.id
