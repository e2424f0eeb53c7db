"""A project whose metastore holds what a test records, without Spark: for pages, metrics and alerts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, Counts, Lease, Run, Verdict
from drawdown.observe.record import record, record_backlog
from drawdown.spec import load_project
from drawdown.workspace import Workspace

SPEC = """
sources: {events: {format: text, path: landing}}
transform: transform.sql
sink: {format: delta, path: tables/NAME, schema: out.ddl}
"""
TTL = timedelta(minutes=5)


class FleetRecords:
    """Pipelines with a spec each, and runs, leases and slices as a test records them."""

    def __init__(self, root: Path, project: str = "") -> None:
        self.root = root
        (root / "include/pipelines").mkdir(parents=True)
        (root / "include/project.yaml").write_text(
            f"storage_root: storage\nmetastore: sqlite:///{root}/m.db\n{project}"
        )
        self.metastore = Metastore.open(f"sqlite:///{root}/m.db")

    def pipeline(self, name: str, more: str = "") -> None:
        folder = self.root / "include/pipelines" / name
        folder.mkdir()
        (folder / "pipeline.yaml").write_text(SPEC.replace("NAME", name) + more)
        (folder / "transform.sql").write_text("SELECT value FROM events")
        (folder / "out.ddl").write_text("value STRING")

    def ran(self, name: str, state: Any = "succeeded", **values: Any) -> Run:
        number = len(self.metastore.runs(name, limit=100_000))
        run = self.metastore.start_run(Run(f"{name}-{number}", name, origin=values.pop("origin", {})))
        if state == "running":
            return run
        return self.metastore.finish_run(run.run_id, state, **values)

    def leased(self, name: str, run: str = "0", ttl: timedelta = TTL) -> Lease:
        return self.metastore.acquire(name, "elsewhere pid 1", f"{name}-{run}", ttl)

    def held(self, name: str, rows: int = 3) -> None:
        """A slice that an audit of run 0 holds."""
        self.committed(name, rows)
        lease = self.leased(name)
        self.metastore.record_verdict(lease, Verdict(name, 1, f"{name}-0", 0, 0, "fail"))
        self.metastore.release(lease)

    def committed(self, name: str, rows: int = 3) -> None:
        """A batch of run 0 that no audit has judged."""
        lease = self.leased(name)
        self.metastore.create_checkpoint(lease, 1, f"_drawdown/{name}/checkpoint-1", {})
        counts = Counts(read=rows, fed=rows, staged=rows)
        self.metastore.note_batch(lease, Batch(name, 1, 0, f"{name}-0", lease.epoch, counts=counts), [], {})
        self.metastore.mark_committed(lease, 1, 0)
        self.metastore.release(lease)

    def waits(self, name: str, **backlog: Any) -> None:
        """A preflight has seen this at the source `events`."""
        with Workspace.open(load_project(self.root)) as workspace:
            record_backlog(workspace, name, {"events": backlog})

    def record(self, *names: str) -> None:
        with Workspace.open(load_project(self.root)) as workspace:
            record(workspace, names)
