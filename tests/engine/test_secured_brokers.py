"""Brokers that ask for a client's certificate, or for a SCRAM login over TLS, are read and written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from pyspark.sql import SparkSession

from drawdown.errors import DrawdownError
from tests.support.sandbox import Sandbox
from tests.support.spark import ROOT
from tests.support.tls_broker import TlsBroker

PASSWORD = 'scram "quoted"'
BROKERS = """
  tls:
    bootstrap_servers: "{tls}"
    security_protocol: SSL
    ssl_ca_location: {folder}/ca.pem
    ssl_keystore_location: {folder}/client.pem
  stranger: {{bootstrap_servers: "{tls}", security_protocol: SSL, ssl_ca_location: {folder}/ca.pem}}
  login:
    bootstrap_servers: "{login}"
    security_protocol: SASL_SSL
    sasl_mechanism: SCRAM-SHA-512
    username: reader
    password: ${{DD_PASSWORD}}
    ssl_ca_location: {folder}/ca.pem
"""
PIPELINE = """
sources:
  events:
    format: kafka
    broker: BROKER
    value: string
    options: {subscribe: events, startingOffsets: earliest}
transform: transform.sql
sink: {format: kafka, broker: BROKER, topic: copied_BROKER, DELIVERY}
state: {partitions: 1}
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    folder = tmp_path_factory.mktemp("tls") / "kafka"
    with TlsBroker(folder, state_dir=ROOT / ".drawdown") as started:
        started.add_user("reader", PASSWORD)
        producer = Producer({"bootstrap.servers": started.bootstrap_servers})
        for value in ("a", "b", "c"):
            producer.produce("events", value)
        for topic in ("copied_tls", "copied_login"):
            producer.produce(topic, "made")
        producer.flush(30)
        yield started


@pytest.fixture
def sandbox(
    tmp_path: Path, spark: SparkSession, broker: TlsBroker, monkeypatch: pytest.MonkeyPatch
) -> Sandbox:
    monkeypatch.setenv("DD_PASSWORD", PASSWORD)
    more = BROKERS.format(tls=broker.tls_servers, login=broker.login_servers, folder=broker.folder)
    return Sandbox(tmp_path / "project", spark, broker.bootstrap_servers, more)


def copies(sandbox: Sandbox, broker: str, delivery: str) -> None:
    spec = PIPELINE.replace("BROKER", broker).replace("DELIVERY", f"delivery: {delivery}")
    sandbox.pipeline(f"by_{broker}", spec, transform_sql="SELECT value FROM events")


def written(broker: TlsBroker, topic: str, count: int) -> list[str]:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    try:
        return sorted(record.value().decode() for record in consumer.consume(count, timeout=30))
    finally:
        consumer.close()


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "delivery"), [("tls", "exactly_once"), ("login", "at_least_once")])
def test_records_go_in_and_out(sandbox: Sandbox, broker: TlsBroker, name: str, delivery: str) -> None:
    copies(sandbox, name, delivery)
    assert sandbox.run(f"by_{name}").counts.read == 3
    assert written(broker, f"copied_{name}", 4) == ["a", "b", "c", "made"]
    kept = [path for path in sandbox.root.rglob("*") if path.is_file()]
    assert not [path for path in kept if PASSWORD.encode() in path.read_bytes()]


@pytest.mark.full
def test_without_a_certificate_nobody_is_let_in(sandbox: Sandbox) -> None:
    copies(sandbox, "stranger", "at_least_once")
    with pytest.raises(DrawdownError, match="does not answer"):
        sandbox.run("by_stranger")
