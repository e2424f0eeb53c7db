"""Spark's daemons as docker-compose.yaml starts them, without containers.

Only addresses, ports and folders are this machine's: each test says which.
"""

from __future__ import annotations

import json
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from drawdown.machine.ports import LOOPBACK, free_ports
from tests.support.native_services import Native, made_secrets
from tests.support.waiting import until


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
