"""SparkSubmitHook with the master of a cluster profile and the stop wrapper in place of spark-submit.

It overrides how the provider resolves a connection, builds the command and handles a line of output. The
provider checks names of binaries only when they come from a connection's extra.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from drawdown.airflow.tasks.job_output import JobOutput
from drawdown.launch.environment import for_spark
from drawdown.launch.settings import Settings

LONGEST_WAIT = 4.0
"""Seconds `ask_to_stop` waits: Airflow kills the task 5 s after its signal."""


class DrainHook(SparkSubmitHook):
    """Submits through drawdown.launch.submit; the profile says where, no connection is needed."""

    def __init__(self, *, settings: Settings, environment: dict[str, Any] | None, **kwargs: Any) -> None:
        self._master = settings.conf.get("spark.master", "")
        private = None if settings.private is None else str(settings.private)
        super().__init__(properties_file=private, **kwargs)
        # On YARN, `env_vars` would become --conf options.
        self._env = environment
        self.output = JobOutput(lambda level, line: self.log.log(level, "%s", line))

    def submit(self, application: str = "", **kwargs: Any) -> str | None:
        """Submit with the part of the task's environment that a driver gets.

        The stock method adds `self._env` to all of it, and Airflow's keys would then be in the environment of
        the front and its guard, which every process of the same user can read.
        """
        ours = self._env or {}
        given = {**os.environ, **{name: str(value) for name, value in ours.items()}}
        self._env = None
        return super().submit(application, env=for_spark(given), **kwargs)

    @property
    def exit_code(self) -> int | None:
        """Return the exit code of the job; None while it runs or when it never started."""
        return None if self._submit_sp is None else self._submit_sp.poll()

    def ask_to_stop(self) -> None:
        """Ask the driver to stop before its next batch; wait a little, then leave the rest to its guard."""
        front = self._submit_sp
        if front is None or front.poll() is not None:
            return
        self.log.info("Asking the driver to stop before its next batch")
        front.terminate()
        try:
            front.wait(LONGEST_WAIT)
        except subprocess.TimeoutExpired:
            self.log.info("The driver is still stopping; its guard ends it after the grace time")

    def _resolve_connection(self) -> dict[str, Any]:
        # The stock method silently turns a missing connection into `--master yarn`.
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

    def _build_spark_submit_command(self, application: str) -> list[str]:
        # As the stock method, except for the level: the command has two kilobytes.
        command = [*self._get_spark_binary_path(), *self._build_spark_common_args(), application]
        command += self._application_args or []
        self.log.debug("%s", self._mask_cmd(command))
        return command

    def _process_spark_submit_log(self, itr: Iterator[str]) -> None:
        # The stock method looks for driver ids in cluster mode; ours always run in client mode.
        self._spark_exit_code = 0
        for line in itr:
            self.output.say(line.rstrip())
        self.output.end()

    def _get_spark_binary_path(self) -> list[str]:
        return [sys.executable, "-m", "drawdown.launch.submit"]
