"""The task `freshness`: fails when what a pipeline has published is older than its spec allows.

A failed task is what Airflow's own alerts (callbacks, notifiers, e-mail) hang on. Airflow's DeadlineAlert
counts from one DAG run's own dates, so it says nothing about a run that succeeded with nothing new.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from drawdown.airflow.records import open_metastore
from drawdown.spec import load_pipeline, load_project

if TYPE_CHECKING:
    from airflow.sdk import Context


class FreshnessOperator(BaseOperator):
    """Runs at the end of every DAG run, also of one that had nothing to do."""

    def __init__(self, *, project_root: str, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.project_root = project_root
        self.pipeline = pipeline

    def execute(self, context: Context) -> None:
        bound = load_pipeline(load_project(Path(self.project_root)), self.pipeline).freshness
        assert bound is not None
        with open_metastore(self.project_root) as metastore:
            last, now = metastore.last_published(self.pipeline), metastore.now()
        if last is None:
            self.log.info("%s has never run", self.pipeline)
        elif now - last > bound.delta:
            raise AirflowFailException(
                f"{self.pipeline} published last at {last:%Y-%m-%d %H:%M:%S} UTC, {now - last} ago;"
                f" freshness: {bound}"
            )
