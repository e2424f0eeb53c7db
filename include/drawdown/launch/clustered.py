"""The cluster of one command: started with its Spark, stopped when the command ends for any reason."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from drawdown.workspace import Workspace

if TYPE_CHECKING:
    from drawdown.spec import Pipeline

_SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""Environment variable: arguments with which PySpark starts its JVM, besides a session builder's settings."""


@contextmanager
def clustered(
    workspace: Workspace,
    pipelines: Sequence[Pipeline],
    origin: Mapping[str, Any],
    *,
    drains: bool,
) -> Iterator[Callable[[], dict[str, str]]]:
    """Yield a function that returns the settings of a session, and starts the cluster when first called.

    Args:
        project: with its logins.
        pipelines: they share one cluster profile.
        origin: the origin of the runs, with `command_id`.
        drains: whether the command reads the pipelines' backlog.
    """
    from drawdown.launch.connection import from_environment
    from drawdown.launch.profile import ClusterRequest, on_cluster
    from drawdown.launch.sizing import Waiting, waiting_for
    from drawdown.plan.preflight import preflight

    def backlogs() -> list[Waiting]:
        return [waiting_for(workspace, each, preflight(workspace, each).backlog) for each in pipelines]

    run = ClusterRequest(str(origin["command_id"]), origin, backlogs if drains else None, from_environment)
    with ExitStack() as stack:

        def settings() -> dict[str, str]:
            found = stack.enter_context(on_cluster(workspace.project, pipelines[0].cluster, run))
            if found.private is not None:
                given = os.environ.get(_SUBMIT_ARGUMENTS, "pyspark-shell")
                private = shlex.quote(str(found.private))
                os.environ[_SUBMIT_ARGUMENTS] = f"--properties-file {private} {given}"
            return found.conf

        yield settings
