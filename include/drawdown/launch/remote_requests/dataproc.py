"""The requests to Dataproc for a job: a cluster, and the job on it."""

from __future__ import annotations

from typing import Any

from drawdown.launch.remote_requests.request import JobRequest, joined
from drawdown.spec import DataprocCluster


def cluster_config(order: JobRequest, profile: DataprocCluster) -> dict[str, Any]:
    """Return a dataproc_v1.ClusterConfig: master and workers, deleted when idle or after all tries."""
    ours = {
        "master_config": {"num_instances": 1, "machine_type_uri": profile.machine_type},
        "worker_config": {"num_instances": order.workers, "machine_type_uri": profile.machine_type},
        "lifecycle_config": {
            "idle_delete_ttl": {"seconds": int(profile.idle.delta.total_seconds())},
            "auto_delete_ttl": {"seconds": int(order.longest.total_seconds())},
        },
    }
    return joined(profile.cluster_config, ours)


def job(order: JobRequest, cluster: str) -> dict[str, Any]:
    """Return a dataproc_v1.Job: a program, started by the cluster's Spark, submits with this project's.

    Args:
        cluster: the name of the run's cluster, which another task has created.
    """
    return {
        "placement": {"cluster_name": cluster},
        "pyspark_job": {
            "main_python_file_uri": f"file://{order.profile.home}/jobs/launch.py",
            "args": order.launched,
        },
    }
