"""The SparkApplication (sparkoperator.k8s.io/v1beta2) of a job, for the Spark operator."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from drawdown.launch.remote_requests.request import JobRequest, joined
from drawdown.spec import KubernetesCluster

_FIELDS = ("spark.driver.memory", "spark.executor.instances", "spark.executor.cores", "spark.executor.memory",
           "spark.dynamicAllocation.enabled")  # fmt: skip
"""Settings that the resource has fields for."""


def spark_application(order: JobRequest, profile: KubernetesCluster) -> dict[str, Any]:
    """Return the resource, without a name: the operator names it for each try."""
    conf = {key: value for key, value in order.conf.items() if key not in _FIELDS}
    conf["spark.kubernetes.driverEnv.PYTHONPATH"] = f"{profile.home}/include"
    secret = {} if profile.secret is None else {"envFrom": [{"secretRef": {"name": profile.secret}}]}
    ours = {
        "type": "Python",
        "pythonVersion": "3",
        "mode": "cluster",
        "image": profile.image,
        "sparkVersion": version("pyspark"),
        "mainApplicationFile": f"local://{order.application}",
        "arguments": order.job_arguments,
        # Airflow retries, after the lease has expired.
        "restartPolicy": {"type": "Never"},
        "sparkConf": conf,
        "driver": {"memory": profile.driver_memory, "serviceAccount": profile.service_account, **secret},
        "executor": {
            "instances": order.workers,
            "cores": profile.worker_cores,
            "memory": profile.worker_memory,
            **secret,
        },
    }
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"namespace": profile.namespace, "labels": order.tags},
        "spec": joined(profile.application, ours),
    }
