"""SRC: several streaming sources in one pipeline, and a static one beside them."""

from __future__ import annotations

import json

import pytest

from drawdown.testing.servers.kafka import KafkaServer
from tests.support.sandbox import Sandbox
from tests.support.topics import Topic

SPEC = """
sources:
  departures: {format: json, path: landing/departures, schema: "airport STRING, flight STRING"}
  arrivals:
    format: kafka
    value: json
    schema: "airport STRING, flight STRING"
    options: {subscribe: src18-arrivals}
  airports: {format: csv, path: reference/airports, schema: "airport STRING, city STRING", static: true}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl}
state: {partitions: 2}
"""
SQL = """
    WITH movements AS (
        SELECT 'departure' AS kind, airport, flight FROM departures
        UNION ALL SELECT 'arrival', airport, flight FROM arrivals
    )
    SELECT kind, city, flight FROM movements LEFT JOIN airports USING (airport)
"""


@pytest.mark.full
@pytest.mark.conformance("SRC-18")
def test_files_and_kafka_join_a_static_source_that_is_read_again_at_each_run(
    kafka_sandbox: Sandbox, broker: KafkaServer
) -> None:
    topic = Topic(broker, "src18-arrivals")
    kafka_sandbox.pipeline(
        "movements",
        SPEC,
        out_ddl="kind STRING, city STRING, flight STRING",
        transform_sql=SQL,
    )
    kafka_sandbox.land("reference/airports/airports.csv", ["EWR,Newark"])
    kafka_sandbox.land_json(
        "landing/departures/1.json", [{"airport": "EWR", "flight": "U1"}, {"airport": "LGA", "flight": "U2"}]
    )
    topic.write([json.dumps({"airport": "EWR", "flight": "B1"})])
    first = kafka_sandbox.run("movements")
    assert first.counts.read == 3

    kafka_sandbox.land("reference/airports/airports.csv", ["EWR,Newark NJ", "LGA,New York"])
    topic.write([json.dumps({"airport": "LGA", "flight": "B2"})])
    second = kafka_sandbox.run("movements")
    assert second.counts.read == 1, "only the topic had something new"

    kafka_sandbox.land_json("landing/departures/2.json", [{"airport": "EWR", "flight": "U3"}])
    kafka_sandbox.run("movements")
    assert kafka_sandbox.delta("tables/out") == [
        ("arrival", "New York", "B2"),
        ("arrival", "Newark", "B1"),
        ("departure", "Newark", "U1"),
        ("departure", "Newark NJ", "U3"),
        ("departure", None, "U2"),
    ]
