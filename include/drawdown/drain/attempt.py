"""One attempt to run a pipeline: what drains, watches, replays and rebuilds work with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from drawdown.drain.run_context import RunContext
from drawdown.drain.slice import Auditor
from drawdown.errors import BusyError
from drawdown.metastore.lease_heartbeat import LeaseHeartbeat
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace

_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Attempt:
    """One attempt to run a pipeline.

    Attributes:
        root: the application's session; a query gets one of its own.
        pipeline: the version in use; for a rebuild, the version to rebuild.
    """

    root: SparkSession
    workspace: Workspace
    pipeline: Pipeline
    auditor: Auditor
    context: RunContext

    @contextmanager
    def wait_for_lease(self, name: str) -> Iterator[LeaseHeartbeat]:
        """Wait for the lease of this name and hold it for the block, so that work under it is done in turn.

        Raises:
            BusyError: asked to stop while waiting.
        """
        metastore, ttl = self.workspace.metastore, self.workspace.project.lease_ttl.delta
        while True:
            try:
                lease = metastore.acquire(name, self.context.holder, self.context.run_id, ttl)
                break
            except BusyError:
                if self.context.stop.wait(_LOOK_SECONDS):
                    raise
        with LeaseHeartbeat(metastore, lease, ttl) as heartbeat:
            yield heartbeat
