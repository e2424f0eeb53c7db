"""A Spark standalone cluster on this machine: a master and workers with one executor each."""

from __future__ import annotations

import os
import sys
import time
import urllib.request
from collections.abc import Mapping
from json import load
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from drawdown.jvm.spark_home import spark_home
from drawdown.processes.background import Background
from drawdown.processes.ports import LOOPBACK, free_ports

MEMORY = "600m"


class StandaloneCluster:
    """``with StandaloneCluster(folder) as cluster``: ``cluster.master`` is its address."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self._folder = folder
        self._port, self._page, *pages = free_ports(2 + workers)
        self.master = f"spark://{LOOPBACK}:{self._port}"
        self._master = Background("master", folder)
        self._workers = {Background(f"worker-{i}", folder): page for i, page in enumerate(pages)}

    def __enter__(self) -> Self:
        try:
            where = ["--host", LOOPBACK, "--port", str(self._port), "--webui-port", str(self._page)]
            self._start(self._master, "master.Master", *where)
            for worker, page in self._workers.items():
                self._start(
                    worker,
                    "worker.Worker",
                    *("--host", LOOPBACK, "--webui-port", str(page), "--cores", "1", "--memory", MEMORY),
                    *("--work-dir", str(self._folder / worker.name), self.master),
                )
            self._wait_until(lambda told: told["aliveworkers"] == len(self._workers))
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _start(self, background: Background, daemon: str, *arguments: str) -> None:
        command = [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{daemon}", *arguments]
        environment = {
            **os.environ,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_IP": LOOPBACK,
            "PYSPARK_PYTHON": sys.executable,
        }
        background.start(command, environment)

    def _wait_until(self, holds: Any, seconds: float = 90) -> None:
        deadline = time.monotonic() + seconds
        while not holds(self._told()):
            assert time.monotonic() < deadline, self._told()
            time.sleep(0.1)

    def _told(self) -> Mapping[str, Any]:
        self._master.require_alive()
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self._page}/json/", timeout=5) as answer:
                told: Mapping[str, Any] = load(answer)
        except (OSError, ValueError):  # not yet listening, or listening and not yet ready to answer
            return {"aliveworkers": 0}
        return told

    def _stop(self) -> None:
        for background in [*self._workers, self._master]:
            background.ask_to_stop()
        for background in [*self._workers, self._master]:
            background.stop()
