"""One attempt to run a pipeline: what drains, watches, replays and rebuilds work with."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from drawdown.drain.run_context import RunContext
from drawdown.drain.slice import Auditor
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace


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
