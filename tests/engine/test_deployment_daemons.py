"""Spark's daemons and the broker as docker-compose.yaml starts them, without containers.

Only addresses, ports and folders are this machine's: each test says which.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from drawdown.processes.ports import LOOPBACK, free_ports
from drawdown.testing.servers.kafka import KafkaServer
from tests.support.compose import ROOT, resolved
from tests.support.native_services import Native, made_secrets
from tests.support.waiting import until


@pytest.mark.full
def test_a_spark_worker_registers_with_the_master(tmp_path: Path) -> None:
    port, master_page, worker_page = free_ports(3)
    moved = {
        '"--host", "spark-master"': f'"--host", "{LOOPBACK}"',
        "spark://spark-master:7077": f"spark://{LOOPBACK}:{port}",
        '"7077"': f'"{port}"',
        '"--webui-port", "8080"': f'"--webui-port", "{master_page}"',
        '"--webui-port", "8081"': f'"--webui-port", "{worker_page}"',
        "localhost:8080/json": f"{LOOPBACK}:{master_page}/json",
        "localhost:8081/json": f"{LOOPBACK}:{worker_page}/json",
        "/var/lib/drawdown/spark": str(tmp_path / "work"),
    }
    native = Native(tmp_path, made_secrets(tmp_path), moved)
    alone = {"SPARK_LOCAL_IP": LOOPBACK, "SPARK_DAEMON_MEMORY": "256m"}
    with ExitStack() as stack:
        for name in ("spark-master", "spark-worker-1"):
            stack.callback(native.start(name, alone).stop)
            until(lambda name=name: native.is_well(name), 900)  # type: ignore[misc]

        def registered() -> bool:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{master_page}/json/", timeout=5) as answer:
                return bool(json.load(answer)["aliveworkers"] == 1)

        until(registered, 900)


class ComposeBroker(KafkaServer):
    """The project's broker with the settings that the compose file gives to the image of Apache Kafka."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        super().__init__(folder, state_dir=ROOT / ".drawdown")
        self._variables = variables

    def _write_settings(self, port: int, controller: int) -> Path:
        super()._write_settings(port, controller)
        moved = {":9092": f":{port}", ":9093": f":{controller}", "kafka:": f"{LOOPBACK}:"}
        moved |= {"/var/lib/kafka/data": str(self.folder / "data")}
        lines = []
        for name, value in self._variables.items():
            for there, here in moved.items():
                value = value.replace(there, here)
            # docker/examples/README.md of Apache Kafka; no setting here holds a `_` or a `-`.
            lines.append(f"{name.removeprefix('KAFKA_').replace('_', '.').lower()}={value}\n")
        settings = self.folder / "server.properties"
        settings.write_text("".join(lines))
        return settings


@pytest.mark.full
def test_the_broker_takes_the_transactions_of_an_exactly_once_sink(tmp_path: Path) -> None:
    variables = resolved(made_secrets(tmp_path))["services"]["kafka"]["environment"]
    with ComposeBroker(tmp_path / "kafka", variables) as broker:
        address = {"bootstrap.servers": broker.bootstrap_servers}
        admin = AdminClient(address)
        admin.create_topics([NewTopic("out", 1)])["out"].result(60)
        producer = Producer({**address, "transactional.id": "one"})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce("out", b"row")
        producer.commit_transaction(60)
        reader = Consumer({**address, "group.id": "g", "auto.offset.reset": "earliest"})
        reader.subscribe(["out"])
        assert until(lambda: reader.poll(1), 900).value() == b"row"
        reader.close()
