"""Small pipelines of one application: each copies JSON events, or a table of another, into a Delta table."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from drawdown.application import SparkApplication
from drawdown.application.watcher import Report, Watcher
from drawdown.metastore.records import Run
from drawdown.spec import load_pipeline
from drawdown.workspace import Workspace
from tests.support.sandbox import Sandbox

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
    """The pipelines of a sandbox, drained by one application in the module's session."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
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
            files: as Sandbox.pipeline.
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
        self.sandbox.pipeline(name, spec, event_ddl="id INT", **transform, **files)
        if name not in self.names:
            self.names.append(name)

    def land(self, name: str, *ids: int) -> None:
        """One file, so one batch, of these rows."""
        self.sandbox.land_json(f"landing/{name}/{ids[0]}.json", [{"id": id} for id in ids])

    def drain(self, watcher: Watcher | None = None, stop: threading.Event | None = None) -> dict[str, Report]:
        """All of them, by one application."""
        project = self.sandbox.project
        with self.sandbox.metastore() as metastore:
            application = SparkApplication(
                Workspace(project, metastore),
                stop=stop or threading.Event(),
                watcher=watcher or Watcher(),
                session=self.sandbox.spark,
            )
            reports = application.drain_all([load_pipeline(project, name) for name in self.names])
            held = [name for name in self.names if metastore.holder_of(name) is not None]
        assert held == [], "each lease is given back"
        self.left_behind = application.left_behind
        return {report.pipeline: report for report in reports}

    def rows(self, name: str) -> list[int]:
        return [row[0] for row in self.sandbox.delta(f"tables/{name}")]

    def last_run(self, name: str) -> Run:
        with self.sandbox.metastore() as metastore:
            return metastore.runs(name)[0]
