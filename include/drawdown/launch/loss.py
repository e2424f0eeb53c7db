"""What is known about why the cluster of a run was lost, for the run's error."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from drawdown.errors import DrawdownError
from drawdown.launch.commands.request import Programs
from drawdown.launch.standalone.cluster_folder import ClusterFolder
from drawdown.metastore import Metastore
from drawdown.spec import CommandsCluster, Project, StandaloneCluster

SAYS = "drawdown: "
"""Begins the lines of the supervisor in the cluster's log; the others are the daemons'."""

_ALIVE_WITHIN = 10.0


def explain_loss(project: Project, cluster: str, origin: Mapping[str, Any]) -> str:
    """Return a sentence about the cluster of the run with this origin; empty when nothing is known."""
    profile, key = project.clusters.get(cluster), key_of_origin(origin)
    if isinstance(profile, StandaloneCluster):
        return _last_words(ClusterFolder.newest_log(project.state_dir, key))
    return _asked(project, key) if isinstance(profile, CommandsCluster) else ""


def key_of_origin(origin: Mapping[str, Any]) -> str:
    """Return the key of the run's cluster: that of the DAG run, or of the command."""
    if "dag_id" in origin:
        return dag_run_key(str(origin["dag_id"]), str(origin.get("dag_run_id")))
    return str(origin.get("command_id", ""))


def dag_run_key(dag_id: str, run_id: str) -> str:
    """Return the key of a DAG run's cluster."""
    return f"{dag_id}.{run_id}"


def _asked(project: Project, key: str) -> str:
    """Ask the profile's `alive`, for a short time: the run has to end."""
    try:
        with Metastore.open(project.metastore_url) as metastore:
            found = metastore.clusters.live(key)
        if found is None:
            return "it was taken down"
        why = Programs(project, found).why_not_alive(_ALIVE_WITHIN)
    except DrawdownError as error:
        return f"`alive` could not be asked: {error.what}"
    return f"`alive` {why}" if why else "`alive` says that the cluster is well"


def _last_words(log: Path | None) -> str:
    if log is None:
        return ""
    with suppress(OSError):
        said = [line for line in log.read_text(errors="replace").splitlines() if line.startswith(SAYS)]
        if said:
            return said[-1].removeprefix(SAYS).strip()
    return ""
