"""The request to EMR Serverless for a job: StartJobRun."""

from __future__ import annotations

import shlex
from math import ceil
from typing import Any

from drawdown.launch.remote_requests.request import JobRequest, joined
from drawdown.spec import EmrServerlessCluster

LIVE = ["SUBMITTED", "QUEUED", "PENDING", "SCHEDULED", "RUNNING"]
"""States of a job run that has not been ended yet."""

_SHORTEST_MINUTES = 5
"""The service takes no shorter time for a job run."""

_DRIVER_ENVIRONMENT = "spark.emr-serverless.driverEnv"


def job_driver(order: JobRequest) -> dict[str, Any]:
    """Return what the job runs; Spark is the application's own, the rest is in its image."""
    home = order.profile.home
    conf = order.conf | {
        f"{_DRIVER_ENVIRONMENT}.PYSPARK_DRIVER_PYTHON": f"{home}/.venv/bin/python",
        f"{_DRIVER_ENVIRONMENT}.PYSPARK_PYTHON": f"{home}/.venv/bin/python",
        f"{_DRIVER_ENVIRONMENT}.PYTHONPATH": f"{home}/include",
        "spark.executorEnv.PYSPARK_PYTHON": f"{home}/.venv/bin/python",
    }
    settings = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    return {
        "sparkSubmit": {
            "entryPoint": f"local://{order.application}",
            "entryPointArguments": order.job_arguments,
            "sparkSubmitParameters": shlex.join(settings),
        }
    }


def about_run(order: JobRequest) -> dict[str, Any]:
    """Return its tags, and the time after which the service itself ends it."""
    within = ceil(order.project.airflow.execution_timeout.delta.total_seconds() / 60)
    return {"tags": order.tags, "executionTimeoutMinutes": max(_SHORTEST_MINUTES, within)}


def configuration_overrides(profile: EmrServerlessCluster) -> dict[str, Any]:
    """Return overrides that name secrets; the service passes them to the driver (`EMR.secret@`)."""
    if not profile.secrets:
        return dict(profile.configuration_overrides)
    named = {
        f"{_DRIVER_ENVIRONMENT}.{variable}": f"EMR.secret@{secret}"
        for variable, secret in profile.secrets.items()
    }
    ours = {"applicationConfiguration": [{"classification": "spark-defaults", "properties": named}]}
    return joined(profile.configuration_overrides, ours)
