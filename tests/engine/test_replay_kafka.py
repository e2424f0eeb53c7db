"""A replay of a pipeline over Kafka reads what the live query has read of its topics, and nothing else."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import delete

from drawdown.errors import DrawdownError, RefusedError
from drawdown.metastore.tables import batches
from drawdown.replay.publish import refuse_replay
from drawdown.spec import load_pipeline
from drawdown.testing.servers.kafka import KafkaServer
from drawdown.values.interval import Interval
from drawdown.workspace import Workspace
from tests.support.replays import REPLAYED, replayed
from tests.support.sandbox import Sandbox
from tests.support.topics import Topic

FIRST_DAY = "2024-01-01", "2024-01-02"


@pytest.fixture
def sandbox(kafka_sandbox: Sandbox) -> Sandbox:
    return kafka_sandbox


def hourly(sandbox: Sandbox, topic: str, more: str = "") -> None:
    sandbox.pipeline(
        "hourly",
        REPLAYED.replace(
            "format: json\n    path: landing/events",
            f"format: kafka\n    options: {{subscribe: {topic}, maxOffsetsPerTrigger: 100{more}}}",
        ),
        events_ddl="at TIMESTAMP, k STRING",
        hourly_ddl="hour TIMESTAMP, k STRING, total BIGINT",
        transform_sql="SELECT window.start AS hour, k, count(*) AS total FROM events"
        " GROUP BY window(at, '1 hour'), k",
        quality_yaml="rules: [{name: known, check: \"k <> 'bad'\", on_fail: quarantine}]",
    )


def event(day: int, hour: int, k: str = "a") -> str:
    return json.dumps({"at": f"2024-01-{day:02}T{hour:02}:30:00Z", "k": k})


def totals(sandbox: Sandbox) -> dict[str, int]:
    found: dict[str, int] = {}
    for hour, k, total in sandbox.delta("tables/hourly"):
        found[f"{hour:%d %H} {k}"] = found.get(f"{hour:%d %H} {k}", 0) + total
    return found


def refusal(sandbox: Sandbox, start: str, end: str) -> DrawdownError:
    """The same with Spark and without it."""
    with pytest.raises(RefusedError) as refused:
        replayed(sandbox, start, end)
    pipeline = load_pipeline(sandbox.project, "hourly")
    with sandbox.metastore() as metastore, pytest.raises(RefusedError) as before:
        refuse_replay(Workspace(sandbox.project, metastore), pipeline, Interval.parse(start, end))
    assert str(before.value) == str(refused.value)
    return refused.value


def test_it_reads_from_the_first_offset_of_the_live_query_to_where_that_stands(
    sandbox: Sandbox, broker: KafkaServer
) -> None:
    topic = Topic(broker, "replayed", partitions=2)
    hourly(sandbox, "replayed", ', startingOffsets: \'{"replayed": {"0": 1, "1": 0}}\'')
    topic.write([event(1, 6, "before"), event(1, 6), "{broken"])
    topic.write([event(2, 6), event(1, 18, "bad")], partition=1)
    sandbox.run("hourly")
    topic.grow(3)
    topic.write([event(1, 7, "late"), event(3, 6)], partition=2)
    topic.write_in_transaction([event(1, 8, "aborted")], commit=False)
    topic.write_in_transaction([event(1, 9, "late")], commit=True)
    sandbox.run("hourly")
    topic.write([event(4, 6)])
    sandbox.run("hourly")
    topic.write([event(1, 10, "not drained")])
    assert totals(sandbox) == {"01 06 a": 1, "02 06 a": 1, "03 06 a": 1}
    run = replayed(sandbox, *FIRST_DAY)
    first_day = {"01 06 a": 1, "01 07 late": 1, "01 09 late": 1}
    assert totals(sandbox) == {**first_day, "02 06 a": 1, "03 06 a": 1}
    assert (run.counts.read, run.counts.quarantined, run.counts.fed) == (4, 1, 3)

    before = totals(sandbox)
    (sandbox.storage / "_drawdown/hourly/checkpoint-1/sources/0/0").unlink()
    error = refusal(sandbox, *FIRST_DAY)
    assert error.id == "replay.no-start"
    assert totals(sandbox) == before


@pytest.mark.full
def test_offsets_that_are_gone_are_refused_until_what_does_not_need_them(
    sandbox: Sandbox, broker: KafkaServer
) -> None:
    topic = Topic(broker, "expiring")
    hourly(sandbox, "expiring")
    for day in range(1, 6):
        topic.write([event(day, 6), event(day, 18)])
        sandbox.run("hourly")
    before = totals(sandbox)
    topic.expire(2)
    error = refusal(sandbox, *FIRST_DAY)
    assert error.id == "replay.offsets-gone"
    assert "offsets 0 to 1 of partition 0 of topic expiring: " in error.what
    assert "what starts after 2024-01-01T18:30:00Z can be" in error.what
    replayed(sandbox, "2024-01-03", "2024-01-04")
    assert totals(sandbox) == before


@pytest.mark.full
def test_a_topic_that_was_made_again_has_not_what_was_read(sandbox: Sandbox, broker: KafkaServer) -> None:
    topic = Topic(broker, "again")
    hourly(sandbox, "again", ", failOnDataLoss: false")
    topic.write([event(1, 6), event(2, 6), event(2, 7)])
    sandbox.run("hourly")
    topic.make_again()
    for day in (3, 4, 5, 6):
        topic.write([event(day, 6)])
        sandbox.run("hourly")
    before = totals(sandbox)
    error = refusal(sandbox, *FIRST_DAY)
    assert error.id == "replay.offsets-gone"
    assert "the records of topic again from before it was recreated" in error.what
    replayed(sandbox, "2024-01-05", "2024-01-06")
    assert totals(sandbox) == before


@pytest.mark.full
def test_a_topic_of_a_pattern_that_was_deleted_is_missed_only_where_it_was_read(
    sandbox: Sandbox, broker: KafkaServer
) -> None:
    topic, other = Topic(broker, "pattern-1"), Topic(broker, "pattern-2")
    hourly(sandbox, "x", ", failOnDataLoss: false")
    spec = sandbox.root / "include/pipelines/hourly/pipeline.yaml"
    spec.write_text(spec.read_text().replace("subscribe: x", 'subscribePattern: "pattern-.*"'))
    other.write([event(1, 6)])
    topic.write([event(1, 7, "b")])
    sandbox.run("hourly")
    other.delete()
    for day in (3, 4, 5, 6):
        topic.write([event(day, 6)])
        sandbox.run("hourly")
    before = totals(sandbox)
    error = refusal(sandbox, *FIRST_DAY)
    assert error.id == "replay.offsets-gone"
    assert "of partition 0 of topic pattern-2" in error.what
    replayed(sandbox, "2024-01-05", "2024-01-06")
    assert totals(sandbox) == before


@pytest.mark.full
def test_a_partition_that_was_added_is_read_from_its_beginning_when_its_first_batch_is_pruned(
    sandbox: Sandbox, broker: KafkaServer
) -> None:
    topic = Topic(broker, "grown")
    hourly(sandbox, "grown")
    topic.write([event(1, 6)])
    sandbox.run("hourly")
    topic.grow(2)
    for batch in ([event(1, 7, "b")], [event(1, 8, "c")], [event(3, 6)], [event(4, 6)]):
        topic.write(batch, partition=1)
        sandbox.run("hourly")
    before = totals(sandbox)
    with sandbox.metastore() as metastore, metastore._writer.begin() as conn:
        # As an earlier version pruned: nothing is left of the batches around the new partition.
        conn.execute(delete(batches).where(batches.c.batch_id.in_([1, 2, 3])))
    replayed(sandbox, *FIRST_DAY)
    assert totals(sandbox) == before


@pytest.mark.full
def test_of_a_key_without_state_the_row_of_the_last_batch_stays(
    sandbox: Sandbox, broker: KafkaServer
) -> None:
    """Batches are told apart by their offsets, partition by partition."""
    topic = Topic(broker, "keyed", partitions=2)
    hourly(sandbox, "keyed")
    folder = sandbox.root / "include/pipelines/hourly"
    spec = (folder / "pipeline.yaml").read_text()
    keyed = spec.replace("time_column: hour", "time_column: hour, mode: update, keys: [hour, k]")
    (folder / "pipeline.yaml").write_text(keyed)
    sql = "SELECT date_trunc('hour', at) AS hour, k, CAST(minute(at) AS BIGINT) AS total FROM events"
    (folder / "transform.sql").write_text(sql)
    for partition, minute in ((1, 45), (0, 50), (1, 10)):
        at = f"2024-01-01T06:{minute}:00Z"
        topic.write([json.dumps({"at": at, "k": "a"}), event(1, minute % 24)], partition=partition)
        sandbox.run("hourly")
    topic.write([event(3, 0)])
    sandbox.run("hourly")
    before = sandbox.delta("tables/hourly")
    assert totals(sandbox)["01 06 a"] == 10
    replayed(sandbox, *FIRST_DAY)
    assert sandbox.delta("tables/hourly") == before
