"""Passwords of a broker and of the metastore's database, and where they turn up: nowhere.

A real drain through `drawdown run`, with a broker that asks for the login and a PostgreSQL metastore; then
everything that was printed, written, kept or shown is searched for the two words.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import psycopg
import pytest
from confluent_kafka import Producer

from drawdown.testing.servers.postgres import PostgresServer
from tests.support.canaries import Place
from tests.support.login_broker import LoginBroker
from tests.support.spark import ROOT

USER, CANARY = "reader", "canary-7f3e9a-of-the-broker"

PROJECT = """
storage_root: storage
metastore: ${DD_METASTORE}
brokers:
  default:
    bootstrap_servers: "SERVERS"
    security_protocol: SASL_PLAINTEXT
    sasl_mechanism: PLAIN
    username: reader
    password: ${DD_PASSWORD}
"""
PIPELINE = """
sources:
  events:
    format: kafka
    schema: "id INT"
    options: {subscribe: events, startingOffsets: earliest}
transform: transform.sql
sink: {format: delta, path: tables/events, schema: out.ddl}
state: {partitions: 1}
"""
QUALITY = """
rules: [{name: small, check: id < 90, on_fail: quarantine}]
expectations: [{type: expect_column_values_to_not_be_null, kwargs: {column: id}}]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("canary")
    folder = root / "project"
    (folder / "include" / "pipelines" / "events").mkdir(parents=True)
    broker = LoginBroker(root / "kafka", USER, CANARY, state_dir=ROOT / ".drawdown")
    with PostgresServer() as server, broker:
        pipeline = folder / "include" / "pipelines" / "events"
        (folder / "include" / "project.yaml").write_text(PROJECT.replace("SERVERS", broker.login_servers))
        (pipeline / "pipeline.yaml").write_text(PIPELINE)
        (pipeline / "transform.sql").write_text("SELECT id FROM events")
        (pipeline / "out.ddl").write_text("id INT")
        (pipeline / "quality.yaml").write_text(QUALITY)
        url = server.create_database()
        environment = {
            **os.environ,
            "DD_METASTORE": url.replace("postgresql://", "postgresql+psycopg://"),
            "DD_PASSWORD": CANARY,
            "PYTHONPATH": str(ROOT / "include"),
        }
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for value in [*range(20), 99]:
            producer.produce("events", json.dumps({"id": value}))
        producer.produce("events", "broken")
        producer.flush(30)
        yield Place(folder, environment, (CANARY, server.password), url)


@pytest.fixture(scope="module")
def drained(place: Place) -> str:
    code, printed = place.command("run", "events")
    assert code == 0, printed
    assert any(b"org.apache.spark.deploy.SparkSubmit" in line for line in place.lines_seen)
    return printed


def test_a_drain_prints_and_writes_no_password(place: Place, drained: str) -> None:
    assert "22 read" in drained
    assert not place.found(drained)
    files = [path for path in place.root.rglob("*") if path.is_file()]
    assert {"spark.log", "metadata"} <= {path.name for path in files}
    assert [path for path in files if place.found(path.read_bytes())] == []


def test_the_metastore_keeps_no_password(place: Place, drained: str) -> None:
    with psycopg.connect(place.metastore_url) as connection:
        tables = [
            name
            for (name,) in connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            ).fetchall()
        ]
        assert "runs" in tables
        for table in tables:
            rows = connection.execute(f'SELECT t::text FROM "{table}" AS t').fetchall()  # type: ignore[arg-type]
            assert not place.found(repr(rows)), table


@pytest.mark.sampled
@pytest.mark.parametrize(
    "command",
    [
        ("validate",),
        ("plan", "events", "--json"),
        ("runs", "events", "--json"),
        ("runs", "--prometheus"),
        ("state", "events", "--json"),
        ("doctor",),
    ],
    ids=lambda command: command[0],
)
def test_no_command_shows_a_password(place: Place, drained: str, command: tuple[str, ...]) -> None:
    _, printed = place.command(*command)
    assert printed
    assert not place.found(printed)


@pytest.mark.sampled
@pytest.mark.parametrize("wrong", ["DD_PASSWORD", "DD_METASTORE"])
def test_no_error_shows_a_password(place: Place, drained: str, wrong: str) -> None:
    canary = "canary-of-a-wrong-password"
    right = place.environment[wrong]
    url = place.metastore_url.rpartition("@")[2]
    place.environment[wrong] = canary if wrong == "DD_PASSWORD" else f"postgresql+psycopg://u:{canary}@{url}"
    try:
        code, printed = place.command("run", "events")
    finally:
        place.environment[wrong] = right
    assert code == 5, printed
    assert canary not in printed
    assert "Traceback" not in printed
