"""Airflow on one host starts Spark on two others for a run; they share nothing but addresses of servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from drawdown.testing.servers.kafka import KafkaServer
from tests.support.airflow_on_a_host import AirflowOnAHost
from tests.support.cellar import SECRET
from tests.support.host_counts import QUALITY, Landed
from tests.support.host_project import (
    WORKERS,
    HostProject,
    beyond,
    daemons_of,
    machines,
    until_no_daemons,
)
from tests.support.hosts import BROKER, Hosts
from tests.support.spark import ROOT
from tests.support.topics import Topic
from tests.support.waiting import until

pytestmark = [pytest.mark.full, pytest.mark.timeout(2400), pytest.mark.capability("HOST-01")]

MORE = """
airflow: {{pool: drawdown, retries: 0}}
brokers:
  default: {{bootstrap_servers: "{broker}"}}
"""
SPEC = """
sources:
  events: {format: json, path: landing/events, schema: "id INT, k STRING", options: {maxFilesPerTrigger: 2}}
  clicks: {format: kafka, value: json, schema: "k STRING", options: {subscribe: clicks}}
transform: transform.sql
sink: {format: delta, path: tables/counts, schema: out.ddl, mode: update, keys: [k], publish: audited}
state: {partitions: 2}
cluster: hosts
"""
SQL = """
select k, count(*) as n from (select k from events union all select k from clicks) group by k
"""
AROUND = ("cluster_up", "drain", "cluster_down")


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    with Hosts(tmp_path / "hosts", "driver", *WORKERS) as hosts:
        machines(hosts)
        yield hosts


def test_a_cluster_of_other_hosts_exists_for_as_long_as_a_run_of_airflow_needs_it(
    hosts: Hosts, tmp_path: Path
) -> None:
    kafka = KafkaServer(tmp_path / "kafka", state_dir=ROOT / ".drawdown", host=BROKER)
    with kafka, beyond(more=MORE.format(broker=kafka.bootstrap_servers)) as servers:
        landed, topic = Landed(servers), Topic(kafka, "clicks", 2)
        files = {"pipeline.yaml": SPEC, "transform.sql": SQL, "out.ddl": "k STRING, n BIGINT"}
        files["quality.yaml"] = QUALITY.replace("name: k_is_there", "name: k_is_there, source: events")
        project = HostProject(hosts, "driver", servers, {"counts": files})
        with AirflowOnAHost(project) as airflow, servers.metastore() as metastore:
            for wave in range(2):
                landed.wave()
                clicked = ["abcf"[(n + wave) % 4] for n in range(20)]
                topic.write((json.dumps({"k": k}) for k in clicked), partition=wave)
                landed.keys.update(clicked)
                airflow.begin("counts")
                until(lambda: all(_executors(hosts, name) for name in WORKERS), 300)
                ran = airflow.ended()
                assert ran["state"] == "success", ran["log"][-8000:]
                assert {ran["tasks"][task] for task in (*AROUND, "audit", "publish")} == {"success"}
                landed.assert_counted()
                until_no_daemons(hosts)
                assert metastore.clusters.standing() == []
                assert SECRET not in ran["log"]

            airflow.begin("counts")
            idle = airflow.ended()
            assert idle["state"] == "success", idle["log"][-8000:]
            assert {idle["tasks"][task] for task in AROUND} == {"skipped"}
            assert [run.state for run in metastore.runs("counts")] == ["succeeded"] * 2
        for name in WORKERS:
            assert not list(hosts[name].folder.glob("**/*.parquet"))


def _executors(hosts: Hosts, name: str) -> list[int]:
    found = []
    for pid in daemons_of(hosts[name]):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in command:
            found.append(pid)
    return found
