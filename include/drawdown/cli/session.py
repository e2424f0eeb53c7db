"""A read-only Spark session for a command; Spark's output goes to .drawdown/logs/spark.log."""

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
    """Yield a session on this machine with the pipeline's cluster profile; it ends with the block.

    Args:
        command: for example `plan`; part of the application's name.
        doing: the text on the screen meanwhile.
    """
    from drawdown.launch.local import local_session

    cluster, name = project.clusters[pipeline.cluster], f"drawdown {command} {pipeline.name}"
    with (
        children_write_to(project.state_dir / "logs" / "spark.log"),
        working(doing),
        local_session(project, cluster, name) as session,
    ):
        yield session
