"""The requests to EMR on EC2 for a job: RunJobFlow for its cluster, AddJobFlowSteps for its driver."""

from __future__ import annotations

from typing import Any

from drawdown.launch.remote_requests.request import JobRequest, joined
from drawdown.spec import EmrCluster

LIVE = ["STARTING", "BOOTSTRAPPING", "RUNNING", "WAITING"]
"""States of a cluster that has not been ended yet."""


def job_flow(order: JobRequest, profile: EmrCluster) -> dict[str, Any]:
    """Return a cluster of a primary node and a core node per worker, which ends after it has been idle."""
    groups = (("MASTER", 1), ("CORE", order.workers))
    ours = {
        "Name": order.name,
        "Instances": {
            "KeepJobFlowAliveWhenNoSteps": True,
            "TerminationProtected": False,
            "InstanceGroups": [
                {"InstanceRole": role, "InstanceType": profile.instance_type, "InstanceCount": count}
                for role, count in groups
            ],
        },
        # Not joined by `joined`, which takes one of two lists.
        "Tags": [
            *profile.job_flow.get("Tags", ()),
            *({"Key": key, "Value": value} for key, value in order.tags.items()),
        ],
        "AutoTerminationPolicy": {"IdleTimeout": int(profile.idle.delta.total_seconds())},
    }
    return joined(profile.job_flow, ours)


def step(order: JobRequest) -> dict[str, Any]:
    """Return a step that runs the driver on the primary node; if it fails, the next try uses the cluster."""
    home = order.profile.home
    return {
        "Name": order.name,
        "ActionOnFailure": "CONTINUE",
        "HadoopJarStep": {
            "Jar": "command-runner.jar",
            "Args": [f"{home}/.venv/bin/python", f"{home}/jobs/launch.py", *order.launched],
        },
    }
