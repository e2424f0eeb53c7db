"""The calls for notebooks and other schedulers: a project's pipelines planned, run and looked at from Python.

They do what the commands of the same names do, by the same code.
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
        spec: what project.yaml says.
        spark: a session that plans and runs use and leave running; None: each starts one of its own, by the
            pipeline's cluster profile, and stops it.
    """

    spec: ProjectSpec
    spark: SparkSession | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str] = ".", spark: SparkSession | None = None) -> Project:
        """The project that this folder is, or lies in.

        Raises:
            SpecError: there is none, or project.yaml is wrong.

        Example:
            >>> project = drawdown.Project.load("/srv/flights")
        """
        return cls(load_project(Path(path)), spark)

    @property
    def pipelines(self) -> list[str]:
        """The names of its pipelines, in alphabetical order."""
        return pipeline_names(self.spec)

    def pipeline(self, name: str) -> Pipeline:
        """One of its pipelines, as its folder is now.

        Raises:
            SpecError: ``spec.no-pipeline``, or its folder is wrong.
        """
        return Pipeline(self, load_pipeline(self.spec, name))

    def runs(self, limit: int = 20) -> list[Run]:
        """The newest runs of all pipelines, newest first."""
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
        """Whether a run would have anything to do, why, and how much waits; starts no Spark."""
        project = self.project.spec
        with Workspace.open(project) as workspace:
            return preflight(workspace, in_use(workspace, self.spec))

    def plan(self) -> Plan:
        """What the next run would refuse, change, keep in state and read; touches nothing.

        Raises:
            MachineError: Java or a jar is missing.
        """
        from drawdown.application.plan import plan
        from drawdown.credentials import collect

        with Workspace.open(self.project.spec) as workspace:
            version = in_use(workspace, self.spec)
            known = collect(self.project.spec, [version])
            with self._session(known) as session:
                return plan(session, replace(workspace, project=known), version)

    def run(self, watcher: Watcher | None = None) -> Run | None:
        """Drain, audit and publish now; returns the run's record, None when there was nothing to do.

        Args:
            watcher: hears of batches and verdicts while the run goes on.

        Raises:
            DrawdownError: whatever ended it: RefusedError (nothing was touched), BusyError (another run holds
                the lease), SourceError, TransformError, AuditFailed (nothing was published), MachineError.
        """
        with self._application("run", watcher, drains=True) as application:
            [report] = application.drain_all([self.spec])
        if report.error is not None:
            raise report.error
        return report.run

    def replay(self, start: datetime, end: datetime, watcher: Watcher | None = None) -> list[Run]:
        """Compute [start, end) of event time again and replace it, one interval of `replay:` after the other.

        Args:
            start: the first event time; UTC unless it has a time zone.
            end: the first event time behind it.

        Raises:
            RefusedError: ``replay.undeclared``: the pipeline says no `replay:`.
            SpecError: the end is not behind the start.
            DrawdownError: as `run`; intervals before the one that failed are replaced.
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
        """Its newest runs, newest first: counts, verdict, error, progress of the last batches."""
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
            )
