"""SINK: Kafka, by Spark's own writer: one topic or one a row, keys, headers, and every output mode."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from drawdown.errors import SourceError, TransformError
from drawdown.testing.servers.kafka import KafkaServer
from drawdown.values.kafka_names import ledger_topic
from tests.support.refusals import refused, refused_spec
from tests.support.sales import sell
from tests.support.sandbox import Sandbox
from tests.support.topics import records

SPEC = """
sources:
  sales: {format: json, path: landing/sales, schema: sales.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.sql
sink: {format: kafka, delivery: at_least_once, SINK}
state: {partitions: 2}
"""
DDL = "shop STRING, amount BIGINT"
TOTALS = """
    SELECT shop AS key, CAST(sum(amount) AS STRING) AS value FROM sales GROUP BY shop
"""
ROWS = """
    SELECT concat('sink04-', shop) AS topic, shop AS key, to_json(struct(*)) AS value,
           array(named_struct('key', 'amount', 'value', CAST(CAST(amount AS STRING) AS BINARY))) AS headers,
           CAST(amount % 2 AS INT) AS partition
    FROM sales
"""


@pytest.mark.conformance("SINK-04")
def test_records_go_to_one_topic_or_to_the_one_that_a_row_names(
    kafka_sandbox: Sandbox, broker: KafkaServer
) -> None:
    sandbox = kafka_sandbox
    _topics(broker, **{"sink04-a": 2, "sink04-b": 2, "sink04-update": 1, "sink04-complete": 1})
    sandbox.pipeline("by_row", SPEC.replace("SINK", "options: {kafka.acks: all}"), sales_ddl=DDL,
                       transform_sql=ROWS)  # fmt: skip
    for mode in ("update", "complete"):
        sink = f"topic: sink04-{mode}, mode: {mode}"
        sandbox.pipeline(mode, SPEC.replace("SINK", sink), sales_ddl=DDL, transform_sql=TOTALS)

    sell(sandbox, 1, a=1, b=2)
    for name in ("by_row", "update", "complete"):
        run = sandbox.run(name)
        assert (run.counts.staged, run.counts.published, run.verdict) == (2, 2, "pass")
    sell(sandbox, 2, a=3)
    for name in ("by_row", "update", "complete"):
        sandbox.run(name)

    assert list(records(broker, "sink04-a")) == [
        (1, "a", '{"shop":"a","amount":1}', [("amount", b"1")]),
        (1, "a", '{"shop":"a","amount":3}', [("amount", b"3")]),
    ]
    assert list(records(broker, "sink04-b")) == [(0, "b", '{"shop":"b","amount":2}', [("amount", b"2")])]
    update, complete = ([r[1:3] for r in records(broker, f"sink04-{m}")] for m in ("update", "complete"))
    assert sorted(update[:2]) == sorted(complete[:2]) == [("a", "1"), ("b", "2")]
    assert update[2:] == [("a", "4")], "what changed"
    assert sorted(complete[2:]) == [("a", "4"), ("b", "2")], "the whole result again"


def test_columns_that_are_no_part_of_a_record_are_refused(kafka_sandbox: Sandbox) -> None:
    sell(kafka_sandbox, 1, a=1)
    spec = SPEC.replace("SINK", "topic: sink04-never")
    kafka_sandbox.pipeline("rows", spec, sales_ddl=DDL, transform_sql="SELECT *, 'x' AS topic FROM sales")
    error = refused(kafka_sandbox, "rows", "sink.kafka-columns", TransformError)
    for wrong in ("`shop` is no column", "`amount` is no column", "no `value`", "would send all to"):
        assert wrong in error.what
    assert "to_json(struct(*))" in error.do


def test_options_that_log_in_or_load_classes_are_refused(sandbox: Sandbox) -> None:
    for option in ("kafka.sasl.jaas.config: x", "kafka.partitioner.class: x", "kafka.transactional.id: x"):
        spec = SPEC.replace("SINK", f"topic: t, options: {{{option}}}")
        refused_spec(sandbox, "rows", spec, "spec.unknown-option", sales_ddl=DDL, transform_sql=TOTALS)


@pytest.mark.full
def test_a_broker_that_is_away_is_one_clear_error(sandbox: Sandbox) -> None:
    sell(sandbox, 1, a=1)
    spec = SPEC.replace("SINK", "topic: sink04-away, mode: update")
    sandbox.pipeline("rows", spec, sales_ddl=DDL, transform_sql=TOTALS)
    error = refused(sandbox, "rows", "sink.broker", SourceError)
    assert "does not answer" in error.what


def _topics(broker: KafkaServer, **partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    made = admin.create_topics([NewTopic(name, count, 1) for name, count in partitions.items()])
    for done in made.values():
        done.result(20)


def test_a_batch_that_ends_the_run_sends_no_record(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    sandbox = kafka_sandbox
    _topics(broker, **{"sink04-judged": 1})
    spec = SPEC.replace("SINK", "topic: sink04-judged").replace(
        "options: {max", "malformed: fail, options: {max"
    )
    rule = "rules: [{name: positive, check: amount > 0, on_fail: fail}]"
    sql = "SELECT shop AS key, CAST(amount AS STRING) AS value FROM sales"
    sandbox.pipeline("judged", spec, sales_ddl=DDL, transform_sql=sql, quality_yaml=rule)
    sell(sandbox, 1, a=1, b=-2)
    with pytest.raises(TransformError, match=r"rule\.failed"):
        sandbox.run("judged")
    sandbox.land("landing/sales/1.json", ['{"shop": "a", "amount": 1}', '{"shop": "b", "amount": "x"}'])
    with pytest.raises(SourceError, match=r"source\.malformed"):
        sandbox.run("judged")
    assert list(records(broker, "sink04-judged")) == []
    sell(sandbox, 1, a=1, b=2)
    assert sandbox.run("judged").counts.published == 2
    assert sorted(record[1:3] for record in records(broker, "sink04-judged")) == [("a", "1"), ("b", "2")]


@pytest.mark.capability("SAFE-11")
def test_a_row_for_the_ledger_of_another_pipeline_is_not_sent(
    kafka_sandbox: Sandbox, broker: KafkaServer
) -> None:
    sandbox, ledger = kafka_sandbox, ledger_topic("sink04_victim")
    _topics(broker, **{ledger: 1})
    sql = f"SELECT '{ledger}' AS topic, 'drawdown/sink04_victim/1/output' AS key, shop AS value FROM sales"
    sandbox.pipeline("thief", SPEC.replace("SINK", "options: {}"), sales_ddl=DDL, transform_sql=sql)
    sell(sandbox, 1, a=1)
    with pytest.raises(TransformError) as failed:
        sandbox.run("thief")
    assert failed.value.id == "sink.reserved-topic"
    assert failed.value.what == f"rows name the reserved topic {ledger}"
    assert not list(records(broker, ledger))
