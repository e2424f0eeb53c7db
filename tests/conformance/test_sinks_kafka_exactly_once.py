"""SINK: Kafka exactly once: transactions of our own, seen by readers of committed records."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from drawdown.errors import AuditFailed, RefusedError, TransformError
from drawdown.held.decide import Decision, decide
from drawdown.spec import load_pipeline
from drawdown.testing.servers.kafka import KafkaServer
from drawdown.values.kafka_names import ledger_topic
from drawdown.workspace import Workspace
from tests.support.refusals import refused, refused_spec
from tests.support.sandbox import Sandbox
from tests.support.topics import Topic, records

SPEC = """
sources:
  sales: {format: json, path: landing/sales, schema: sales.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.sql
sink: {format: kafka, SINK}
state: {partitions: 2}
"""
DDL = "shop STRING, amount BIGINT"
ROWS = """
    SELECT shop AS key, to_json(struct(*)) AS value,
           array(named_struct('key', 'amount', 'value', CAST(CAST(amount AS STRING) AS BINARY))) AS headers
    FROM sales
"""
BY_ROW = "SELECT NULLIF(concat('sink06-', shop), 'sink06-none') AS topic, shop AS value FROM sales"
QUALITY = """
expectations:
  - {type: expect_column_values_to_not_match_regex, kwargs: {column: value, regex: "99"}}
"""


@pytest.mark.conformance("SINK-05")
def test_readers_of_committed_records_see_every_row_once(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    sandbox, topic = kafka_sandbox, Topic(broker, "sink06-sales", 3)
    sandbox.pipeline("sink06", SPEC.replace("SINK", "topic: sink06-sales"), sales_ddl=DDL,
                       transform_sql=ROWS)  # fmt: skip
    oracle: Counter[tuple[object, ...]] = Counter()
    for drain in range(2):
        for file in range(2):
            sold = [(f"shop{n % 7}", 100 * drain + 10 * file + n % 5) for n in range(40)]
            oracle.update(sold)
            rows = [{"shop": shop, "amount": amount} for shop, amount in sold]
            sandbox.land_json(f"landing/sales/{drain}{file}.json", rows, mtime=10 * drain + file + 1)
        run = sandbox.run("sink06")
        assert (run.counts.staged, run.counts.published, run.verdict) == (80, 80, "pass")

    seen = list(records(broker, topic.name))
    assert Counter((key, json.loads(value)["amount"]) for _, key, value, _ in seen) == oracle
    assert all(
        headers == [("amount", value.rpartition(":")[2][:-1].encode())] for _, _, value, headers in seen
    )
    assert len({(key, partition) for partition, key, _, _ in seen}) == 7, "a key stays in its partition"
    assert sandbox.drain("sink06")[0].run is None, "one more run is a no-op"
    assert not [path for path in sandbox.snapshot() if "/staged/part" in path], "nothing waits"


def test_a_slice_that_fails_its_audit_is_not_sent_before_a_person_says_so(
    kafka_sandbox: Sandbox, broker: KafkaServer
) -> None:
    sandbox, topic = kafka_sandbox, Topic(broker, "sink06-audited")
    sandbox.pipeline("sink06_audited", SPEC.replace("SINK", f"topic: {topic.name}"), sales_ddl=DDL,
                       transform_sql=ROWS, quality_yaml=QUALITY)  # fmt: skip
    sandbox.land_json("landing/sales/1.json", [{"shop": "a", "amount": 99}], mtime=1)
    with pytest.raises(AuditFailed):
        sandbox.run("sink06_audited")
    assert not list(records(broker, topic.name))
    with sandbox.metastore() as metastore:
        pipeline = load_pipeline(sandbox.project, "sink06_audited")
        decision = Decision("release", "r1", "this process", "ada", "looked at")
        assert decide(Workspace(sandbox.project, metastore), pipeline, decision).rows == 1
    assert [value for _, _, value, _ in records(broker, topic.name)] == ['{"shop":"a","amount":99}']


def test_rows_name_their_topics_and_one_that_names_none_stops_the_batch(
    kafka_sandbox: Sandbox, broker: KafkaServer
) -> None:
    sandbox = kafka_sandbox
    for shop in ("a", "b"):
        Topic(broker, f"sink06-{shop}")
    sandbox.pipeline("sink06_by_row", SPEC.replace("SINK", "publish: direct"), sales_ddl=DDL,
                       transform_sql=BY_ROW)  # fmt: skip
    sandbox.land_json("landing/sales/1.json", [{"shop": "a"}, {"shop": "b"}, {"shop": "a"}], mtime=1)
    sandbox.run("sink06_by_row")
    sandbox.land_json("landing/sales/2.json", [{"shop": "none"}, {"shop": "b"}], mtime=2)
    with pytest.raises(TransformError) as failed:
        sandbox.run("sink06_by_row")
    assert failed.value.id == "sink.no-topic"
    assert [[v for _, _, v, _ in records(broker, f"sink06-{shop}")] for shop in "ab"] == [["a", "a"], ["b"]]


@pytest.mark.capability("SAFE-11")
def test_a_row_for_the_ledger_of_another_pipeline_stops_the_batch(
    kafka_sandbox: Sandbox, broker: KafkaServer
) -> None:
    sandbox, mine, ledger = (
        kafka_sandbox,
        Topic(broker, "sink06-mine"),
        Topic(broker, ledger_topic("sink06_other")),
    )
    sql = "SELECT shop AS topic, 'drawdown/sink06_other/1/output' AS key, '{}' AS value FROM sales"
    sandbox.pipeline("sink06_thief", SPEC.replace("SINK", "publish: direct"), sales_ddl=DDL,
                       transform_sql=sql)  # fmt: skip
    sandbox.land_json("landing/sales/1.json", [{"shop": mine.name}, {"shop": ledger.name}], mtime=1)
    with pytest.raises(TransformError) as failed:
        sandbox.run("sink06_thief")
    assert failed.value.id == "sink.reserved-topic"
    assert ledger.name in failed.value.what
    assert not [*records(broker, mine.name), *records(broker, ledger.name)], "nothing is sent"


@pytest.mark.full
def test_a_ledger_of_another_checkpoint_or_none_is_refused(
    kafka_sandbox: Sandbox, broker: KafkaServer
) -> None:
    sandbox, topic = kafka_sandbox, Topic(broker, "sink06-ledger")
    ledger = Topic(broker, "drawdown-ledger.sink06_ledger")
    sandbox.pipeline("sink06_ledger", SPEC.replace("SINK", f"topic: {topic.name}"), sales_ddl=DDL,
                       transform_sql=ROWS)  # fmt: skip
    sandbox.land_json("landing/sales/1.json", [{"shop": "a", "amount": 1}], mtime=1)
    sandbox.run("sink06_ledger")
    other = Sandbox(sandbox.root / "other", sandbox.spark, kafka=broker.bootstrap_servers)
    other.pipeline("sink06_ledger", SPEC.replace("SINK", f"topic: {topic.name}"), sales_ddl=DDL,
                   transform_sql=ROWS)  # fmt: skip
    other.land_json("landing/sales/1.json", [{"shop": "b", "amount": 1}], mtime=1)
    refused(other, "sink06_ledger", "sink.not-ours", RefusedError)
    ledger.delete()
    sandbox.land_json("landing/sales/2.json", [{"shop": "a", "amount": 2}], mtime=2)
    refused(sandbox, "sink06_ledger", "sink.missing", RefusedError)
    assert len(list(records(broker, topic.name))) == 1


def test_what_only_sparks_own_writer_takes_asks_for_at_least_once(sandbox: Sandbox) -> None:
    for option in ("kafka.acks: all", "asyncProgressTrackingEnabled: true"):
        spec = SPEC.replace("SINK", f"topic: t, options: {{{option}}}")
        error = refused_spec(sandbox, "rows", spec, "spec.no-effect", sales_ddl=DDL, transform_sql=ROWS)
        assert "at_least_once" in error.do
    spec = SPEC.replace("SINK", "topic: t, delivery: at_least_once, publish: audited")
    refused_spec(sandbox, "rows", spec, "spec.contradiction", sales_ddl=DDL, transform_sql=ROWS)
