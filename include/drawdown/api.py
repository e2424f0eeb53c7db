"""Calls for notebooks and other schedulers: plan, run and inspect a project's pipelines from Python.

They share the code of the commands with the same names.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drawdown.application.plan import Plan
from drawdown.application.watcher import Watcher
from drawdown.metastore import Metastore
from drawdown.metastore.records import Run
from drawdown.plan.preflight import Preflight, preflight
from drawdown.plan.version_in_use import in_use
from drawdown.spec import Pipeline as PipelineSpec
from drawdown.spec import Project as ProjectSpec
from drawdown.spec import load_pipeline, load_project, pipeline_names
from drawdown.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from drawdown.application import SparkApplication


@dataclass(frozen=True)
class Project:
    """A project folder: include/project.yaml and include/pipelines/.

    Attributes:
        spec: the content of project.yaml.
        spark: a session that plans and runs use and leave running; None: each starts its own session from the
            pipeline's cluster profile and stops it.
    """

    spec: ProjectSpec
    spark: SparkSession | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str] = ".", spark: SparkSession | None = None) -> Project:
        """Load the project of this folder or of the nearest parent that is one.

        Raises:
            SpecError: no project was found, or project.yaml is invalid.

        Example:
            >>> project = drawdown.Project.load("/srv/flights")
        """
        return cls(load_project(Path(path)), spark)

    @property
    def pipelines(self) -> list[str]:
        """Return the names of its pipelines, in alphabetical order."""
        return pipeline_names(self.spec)

    def pipeline(self, name: str) -> Pipeline:
        """Return one of its pipelines, read from its folder now.

        Raises:
            SpecError: ``spec.no-pipeline``, or its folder is invalid.
        """
        return Pipeline(self, load_pipeline(self.spec, name))

    def runs(self, limit: int = 20) -> list[Run]:
        """Return the newest runs of all pipelines, newest first."""
        with Metastore.open(self.spec.metastore_url) as metastore:
            return metastore.runs(limit=limit)


@dataclass(frozen=True)
class Pipeline:
    """One pipeline of a project."""

    project: Project
    spec: PipelineSpec

    @property
    def name(self) -> str:
        return self.spec.name

    def preflight(self) -> Preflight:
        """Find out whether a run would have work, why, and how large the backlog is; starts no Spark."""
        project = self.project.spec
        with Workspace.open(project) as workspace:
            return preflight(workspace, in_use(workspace, self.spec))

    def plan(self) -> Plan:
        """Plan the next run: refusals, changes, kept state and backlog; changes nothing.

        Raises:
            MachineError: Java or a jar is missing.
        """
        from drawdown.application.plan import plan
        from drawdown.credentials import collect
        from drawdown.launch.sizing import with_size

        with Workspace.open(self.project.spec) as workspace:
            version = in_use(workspace, self.spec)
            known = collect(self.project.spec, [version])
            with self._session(known) as session:
                found = plan(session, replace(workspace, project=known), version)
            return with_size(workspace, version, found)

    def run(self, watcher: Watcher | None = None) -> Run | None:
        """Drain, audit and publish now; returns the run's record, None when there was no work.

        Args:
            watcher: receives batches and verdicts while the run goes on.

        Raises:
            DrawdownError: what ended the run: RefusedError (nothing was touched), BusyError (another run
                holds the lease), SourceError, TransformError, AuditFailed (nothing was published),
                MachineError.
        """
        with self._application("run", watcher, drains=True) as application:
            [report] = application.drain_all([self.spec])
        if report.error is not None:
            raise report.error
        return report.run

    def replay(self, start: datetime, end: datetime, watcher: Watcher | None = None) -> list[Run]:
        """Recompute and replace [start, end) of event time, one `replay:` interval after the other.

        Args:
            start: the first event time; UTC unless it has a time zone.
            end: the end of the range, exclusive.

        Raises:
            RefusedError: ``replay.undeclared``: the pipeline has no `replay:`.
            SpecError: the end is not after the start.
            DrawdownError: as `run`; earlier intervals stay replaced.
        """
        from drawdown.sources.replay_basis import replay_of
        from drawdown.values.interval import Interval

        whole = Interval.parse(start.isoformat(), end.isoformat())
        parts = list(whole.parts(replay_of(self.spec).interval.delta))
        with self._application("replay", watcher, drains=False) as application:
            reports = application.replay(self.spec, parts)
        for report in reports:
            if report.error is not None:
                raise report.error
        return [report.run for report in reports if report.run is not None]

    def runs(self, limit: int = 20) -> list[Run]:
        """Return its newest runs, newest first: counts, verdict, error, progress of the last batches."""
        with Metastore.open(self.project.spec.metastore_url) as metastore:
            return metastore.runs(self.name, limit=limit)

    @contextmanager
    def _session(self, known: ProjectSpec) -> Iterator[SparkSession]:
        if self.project.spark is not None:
            yield self.project.spark
            return
        from drawdown.launch.local import local_session

        with local_session(known, known.clusters[self.spec.cluster], f"drawdown plan {self.name}") as session:
            yield session

    @contextmanager
    def _application(self, call: str, watcher: Watcher | None, *, drains: bool) -> Iterator[SparkApplication]:
        from drawdown.application import SparkApplication, new_run_id
        from drawdown.credentials import collect
        from drawdown.launch.clustered import clustered
        from drawdown.launch.loss import explain_loss

        origin: dict[str, Any] = {
            "command_id": new_run_id(),
            "command": f"drawdown.Pipeline.{call}",
            "by": getpass.getuser(),
        }
        known = collect(self.project.spec, [self.spec])
        with (
            Workspace.open(known) as workspace,
            clustered(workspace, [self.spec], origin, drains=drains) as conf,
        ):
            yield SparkApplication(
                workspace,
                conf,
                origin,
                watcher=watcher or Watcher(),
                session=self.project.spark,
                explain_loss=explain_loss,
            )
