"""A Spark of a command's own, for looking: what it prints goes to .drawdown/logs/spark.log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from drawdown.cli.screen import children_write_to, working

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from drawdown.spec import Pipeline, Project


@contextmanager
def own_session(project: Project, pipeline: Pipeline, command: str, doing: str) -> Iterator[SparkSession]:
    """A session by the pipeline's cluster profile, on this machine; ends with the block.

    Args:
        command: `plan`; it is in the application's name.
        doing: what the screen says meanwhile.
    """
    from drawdown.launch.local import local_session

    cluster, name = project.clusters[pipeline.cluster], f"drawdown {command} {pipeline.name}"
    with (
        children_write_to(project.state_dir / "logs" / "spark.log"),
        working(doing),
        local_session(project, cluster, name) as session,
    ):
        yield session
