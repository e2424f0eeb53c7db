"""SparkSubmitHook with the master of a cluster profile and the stop wrapper in place of spark-submit.

Two of the provider's own seams are used: what a connection resolves to, and the first words of the
command. The provider checks names of binaries only when they come from a connection's extra.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from drawdown.launch.settings import Settings

LONGEST_WAIT = 4.0
"""Seconds `ask_to_stop` waits: Airflow kills the task 5 s after its signal."""


class DrainHook(SparkSubmitHook):
    """Submits through drawdown.launch.submit; the profile says where, no connection is needed."""

    def __init__(self, *, settings: Settings, environment: dict[str, Any] | None, **kwargs: Any) -> None:
        self._master = settings.conf.get("spark.master", "")
        private = None if settings.private is None else str(settings.private)
        super().__init__(properties_file=private, **kwargs)
        # As `env_vars` it would be a --conf wherever the master is YARN.
        self._env = environment

    @property
    def exit_code(self) -> int | None:
        """The exit code of the job; None while it runs or when it never started."""
        return None if self._submit_sp is None else self._submit_sp.poll()

    def ask_to_stop(self) -> None:
        """Have the driver stop before its next batch; what has not ended in time ends without this task."""
        front = self._submit_sp
        if front is None or front.poll() is not None:
            return
        self.log.info("Asking the driver to stop before its next batch")
        front.terminate()
        try:
            front.wait(LONGEST_WAIT)
        except subprocess.TimeoutExpired:
            self.log.info("The driver is still stopping; its guard sees to it")

    def _resolve_connection(self) -> dict[str, Any]:
        # The stock method turns a missing connection into `--master yarn` without a word.
        return {
            "master": self._master,
            "queue": None,
            "deploy_mode": "client",
            "spark_binary": sys.executable,
            "namespace": None,
            "principal": None,
            "keytab": None,
            "rest_scheme": "http",
            "rest_port": 6066,
            "rest_endpoint": None,
        }

    def _get_spark_binary_path(self) -> list[str]:
        return [sys.executable, "-m", "drawdown.launch.submit"]
