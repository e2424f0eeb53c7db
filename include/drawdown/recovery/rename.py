"""Rename: moves everything kept under a pipeline's old name to its new name. The sink is not touched.

1  refuse if the new folder has no `first_name:`, a run is active, or the new name is taken
2  mark the new folder in the storage, then copy everything below `_drawdown/OLD` and `quarantine/OLD`; logs
   of files and snapshots in the copies get the new paths
3  update the metastore's rows in one transaction, which switches from the old name to the new
4  remove the mark and the old files
If it is interrupted anywhere, running the command again completes it. Before step 3 a run under the new name
is refused (`rename.not-done` or `checkpoint.unknown`), because it would start from scratch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from drawdown.checkpoint import CheckpointFiles
from drawdown.checkpoint.roots import moved, spellings
from drawdown.errors import DrawdownError, RefusedError
from drawdown.fault_points import durable
from drawdown.layout import home_of, quarantine_of, snapshots_of
from drawdown.metastore.lease_heartbeat import LeaseHeartbeat
from drawdown.metastore.records import Lease, Run
from drawdown.plan.moved_storage import logs_of_files
from drawdown.publishing.clean_up import clean_up_changes
from drawdown.recovery.first_names import RENAMING
from drawdown.recovery.request import RecoveryRequest
from drawdown.recovery.snapshots import MANIFEST, snapshot_names
from drawdown.spec import Pipeline, Project, load_next, pipeline_names
from drawdown.storage import Storage
from drawdown.values.nearest import did_you_mean
from drawdown.workspace import Workspace

KIND = "rename"


def rename(workspace: Workspace, pipeline: Pipeline, old: str, request: RecoveryRequest) -> None:
    """Rename the pipeline, in the steps of this module's docstring.

    Args:
        pipeline: the pipeline under its new name.

    Raises:
        RefusedError: ``rename.folder``, ``rename.first-name``, ``rename.unknown``, ``rename.taken``,
            ``rename.open-run``. Nothing is touched then.
        BusyError: ``lease.held``: a run under either name is active.
        SourceError: the storage or the metastore cannot be reached.
    """
    work = _Rename(workspace, pipeline, old)
    if work.is_switched:
        work.clean_up()
        return
    work.refuse()
    ttl = workspace.project.lease_ttl.delta
    with ExitStack() as held:
        heartbeats = [
            held.enter_context(
                LeaseHeartbeat(store, store.acquire(name, request.holder, request.run_id, ttl), ttl)
            )
            for store, name in (
                (workspace.metastore, pipeline.name),
                (workspace.metastore.of_rebuilds, old),
                (workspace.metastore, f"{old}#replay"),
                (workspace.metastore, old),
            )
        ]
        # What a dead replay or recovery left open is closed here; a drain's takes a drain.
        clean_up_changes(workspace, heartbeats[-2].lease, pipeline, old)
        # Between the first check and the lease a run may have started and ended.
        work.refuse()
        origin = {"by": request.by, "why": request.why, "from": old, "to": pipeline.name}
        workspace.metastore.start_run(
            Run(request.run_id, old, kind=KIND, holder=request.holder, origin=origin)
        )
        try:
            work.copy()
            for heartbeat in heartbeats:
                heartbeat.check()
            work.keep_name_in_sink(heartbeats[-1].lease)
            with durable("rename.switch"):
                workspace.metastore.rename(heartbeats[-1].lease, pipeline.name, work.roots)
        except DrawdownError as error:
            workspace.metastore.finish_run(request.run_id, "failed", error=error.as_dict())
            raise
    work.clean_up()


def refuse_folder(project: Project, old: str, new: str) -> None:
    """Refuse while the folder has its old name, RefusedError ``rename.folder``."""
    if old in pipeline_names(project):
        raise RefusedError(
            "rename.folder",
            f"include/pipelines still has {old}; nothing was changed",
            where=f"pipeline {new}",
            do=f"git mv include/pipelines/{old} include/pipelines/{new}",
        )


@dataclass(frozen=True)
class _Rename:
    workspace: Workspace
    pipeline: Pipeline
    old: str

    @cached_property
    def storage(self) -> Storage:
        return self.workspace.storage

    @property
    def new(self) -> str:
        return self.pipeline.name

    @property
    def _folders(self) -> list[tuple[str, str]]:
        return [(of(self.old), of(self.new)) for of in (home_of, quarantine_of)]

    @property
    def roots(self) -> list[tuple[str, str]]:
        """Return old and new path prefixes, in every notation that occurs."""
        found = [(f"{old}/", f"{new}/") for old, new in self._folders]
        for old, new in self._folders:
            found += sorted(spellings(self.storage.path(old), self.storage.path(new)))
        return found

    @property
    def is_switched(self) -> bool:
        """Whether a rename was interrupted after step 3."""
        return self._marked_for == self.old and not self.workspace.metastore.generations(self.old)

    @property
    def _mark(self) -> str:
        return f"{home_of(self.new)}/{RENAMING}"

    @property
    def _marked_for(self) -> str | None:
        """Return the old name of an unfinished rename to this name."""
        return self.storage.read_bytes(self._mark).decode() if self.storage.exists(self._mark) else None

    def refuse(self) -> None:
        """Check all preconditions; changes nothing."""
        old, new = self.old, self.new
        refuse_folder(self.workspace.project, old, new)
        generations = self.workspace.metastore.generations(old)
        if not generations:
            known = self.workspace.metastore.names() - {*pipeline_names(self.workspace.project)}
            what = f"the metastore knows no checkpoint of {old} ({did_you_mean(old, known)})"
            raise self._refused("unknown", what, "drawdown runs")
        first = str(generations[-1].fingerprint.get("sink.name", old))
        for version in (self.pipeline, load_next(self.workspace.project, new)):
            if version is not None and version.name_in_sink != first:
                # After a swap, the version in `next/` is the one in use.
                where = "next/pipeline.yaml" if version.is_next else "pipeline.yaml"
                raise self._refused(
                    "first-name",
                    f"the sink identifies the batches of {old} by the name {first}",
                    f"write `first_name: {first}` into include/pipelines/{new}/{where}",
                )
        theirs = self.workspace.metastore.generations(new) or (
            self._marked_for != old and any(True for _, to in self._folders for _ in self.storage.walk(to))
        )
        if theirs:
            raise self._refused(
                "taken", f"{new} already has its own checkpoint or files", f"drawdown checkpoint show {new}"
            )
        self._refuse_unfinished()

    def _refuse_unfinished(self) -> None:
        runs = [
            run.run_id
            for side in (self.workspace.metastore, self.workspace.metastore.of_rebuilds)
            for run in side.open_runs(self.old)
            if run.kind != KIND
        ]
        changes = self.workspace.metastore.open_changes(self.old)
        replays = f"{self.old}#replay"
        busy = self.workspace.metastore.holder_of(replays) is not None
        if runs or any(change.lease != replays or busy for change in changes):
            raise self._refused(
                "open-run",
                f"a run of {self.old} is active, or died and left work behind"
                + "".join(f" ({r})" for r in runs),
                f"wait until it ends; or rename the folder back and `drawdown run {self.old}`",
            )

    def _refused(self, id: str, what: str, do: str) -> RefusedError:
        return RefusedError(
            f"rename.{id}", f"{what}; nothing was changed", where=f"pipeline {self.new}", do=do
        )

    def copy(self) -> None:
        """Create the new folders, even if an earlier attempt left some."""
        for _, new in self._folders:
            self.storage.delete(new)
        self.storage.write_atomic(self._mark, self.old.encode())
        for old, new in self._folders:
            for info in list(self.storage.walk(old)):
                with durable("rename.copy"):
                    self.storage.copy(info.relative, f"{new}/{info.relative[len(old) + 1 :]}")
        for path in self._checkpoints():
            for log in logs_of_files(self.storage, CheckpointFiles(self.storage, path), None):
                log.rename(self._moved)
        for name in snapshot_names(self.storage, self.new):
            manifest = f"{snapshots_of(self.new)}/{name}/{MANIFEST}"
            noted = json.loads(self.storage.read_bytes(manifest))
            self.storage.write_atomic(manifest, json.dumps(self._renamed(noted)).encode())

    def keep_name_in_sink(self, lease: Lease) -> None:
        """Record the name in each generation, so that the next run is refused without `first_name:`."""
        noted = {
            each.generation: {"fingerprint": {**each.fingerprint, "sink.name": self.pipeline.name_in_sink}}
            for each in self.workspace.metastore.generations(self.old)
        }
        self.workspace.metastore.change_generations(lease, noted)

    def clean_up(self) -> None:
        """Remove what was copied, once the metastore names the copies."""
        for old, _ in self._folders:
            with durable("rename.remove"):
                self.storage.delete(old)
        # By time: the last one did it, the ones before were killed.
        asked = sorted(run.run_id for run in self.workspace.metastore.open_runs(self.new) if run.kind == KIND)
        for run_id in asked[:-1]:
            self.workspace.metastore.finish_run(run_id, "crashed")
        for run_id in asked[-1:]:
            self.workspace.metastore.finish_run(
                run_id, "succeeded", stop_reason=f"{self.old} is {self.new} now"
            )
        self.storage.delete(self._mark)

    def _checkpoints(self) -> Iterator[str]:
        """Yield the copies of all checkpoints, including those in snapshots."""
        for generation in self.workspace.metastore.generations(self.old):
            yield f"{home_of(self.new)}/{generation.path.rpartition('/')[2]}"
        for name in snapshot_names(self.storage, self.new):
            yield f"{snapshots_of(self.new)}/{name}/checkpoint"

    def _moved(self, path: str) -> str:
        for old, new in self._folders:
            path = moved(path, self.storage.path(old), self.storage.path(new))
        return path

    def _renamed(self, value: Any) -> Any:
        """Return a snapshot's records under the new name."""
        if isinstance(value, Mapping):
            return {
                self._renamed(key): self.new if key == "pipeline" else self._renamed(each)
                for key, each in value.items()
            }
        if isinstance(value, list):
            return [self._renamed(each) for each in value]
        if isinstance(value, str):
            for old, new in self.roots:
                if value.startswith(old):
                    return new + value[len(old) :]
        return value
