"""Small pipelines of one application: each copies JSON events, or a table of another, into a Delta table."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from drawdown.application import Application
from drawdown.metastore.records import Run
from drawdown.spec import load_pipeline
from drawdown.watcher import Report, Watcher
from tests.support.workspace import Workspace

_SPEC = """
sources: {{{sources}}}
transform: transform.{kind}
sink: {{{sink}}}
state: {{partitions: 2}}
{more}
"""
_FILES = (
    "events: {{format: json, path: landing/{name}, schema: event.ddl, options: {{maxFilesPerTrigger: 1}}}}"
)
_TABLE = "format: delta, path: tables/{name}, schema: event.ddl"


class Group:
    """The pipelines of a workspace, drained by one application in the module's session."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.names: list[str] = []
        self.left_behind: list[str] = []

    def copy(
        self,
        name: str,
        reads: Iterable[str] = (),
        python: str = "",
        sink: str = "",
        more: str = "",
        **files: str,
    ) -> None:
        """A pipeline over files that land for it, or over the tables of others.

        Args:
            python: its transform.py instead of a copy.
            files: as Workspace.pipeline.
        """
        tables = ", ".join(f"{each}: {{format: delta, path: tables/{each}}}" for each in reads)
        spec = _SPEC.format(
            sources=tables or _FILES.format(name=name),
            kind="py" if python else "sql",
            sink=sink or _TABLE.format(name=name),
            more=more,
        )
        read = " UNION ALL ".join(f"SELECT id FROM {each}" for each in reads or ["events"])
        transform = {"transform_py": python} if python else {"transform_sql": read}
        self.workspace.pipeline(name, spec, event_ddl="id INT", **transform, **files)
        if name not in self.names:
            self.names.append(name)

    def land(self, name: str, *ids: int) -> None:
        """One file, so one batch, of these rows."""
        self.workspace.land_json(f"landing/{name}/{ids[0]}.json", [{"id": id} for id in ids])

    def drain(self, watcher: Watcher | None = None, stop: threading.Event | None = None) -> dict[str, Report]:
        """All of them, by one application."""
        project = self.workspace.project
        with self.workspace.metastore() as metastore:
            application = Application(
                project,
                metastore,
                stop=stop or threading.Event(),
                watcher=watcher or Watcher(),
                session=self.workspace.spark,
            )
            reports = application.drain_all([load_pipeline(project, name) for name in self.names])
            held = [name for name in self.names if metastore.holder_of(name) is not None]
        assert held == [], "each lease is given back"
        self.left_behind = application.left_behind
        return {report.pipeline: report for report in reports}

    def rows(self, name: str) -> list[int]:
        return [row[0] for row in self.workspace.delta(f"tables/{name}")]

    def last_run(self, name: str) -> Run:
        with self.workspace.metastore() as metastore:
            return metastore.runs(name)[0]
