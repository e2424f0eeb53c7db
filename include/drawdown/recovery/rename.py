"""Rename a pipeline: all that is kept under its old name is kept under the new one. Its sink is not touched.

1  refuse when the new folder does not say `first_name:`, a run goes on, or the new name is taken
2  mark the new folder of the storage, then copy what is below `_drawdown/OLD` and `quarantine/OLD`; in the
   copies logs of files and snapshots name files in their new place
3  the metastore's rows, in one transaction: until then the old name holds, from then on the new one
4  take the mark away, and remove what was copied
Cut off anywhere, the same command again completes it. A run of the new name before step 3 is refused
(`rename.not-done`, or `checkpoint.unknown`), because it would begin from nothing.
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
from drawdown.plan.moved import logs_of_files
from drawdown.recovery.request import Request
from drawdown.recovery.snapshots import MANIFEST, snapshot_names
from drawdown.spec import Pipeline, pipeline_names
from drawdown.storage import Storage
from drawdown.workspace import Workspace

KIND = "rename"
_MARK = "renaming"


def rename(workspace: Workspace, pipeline: Pipeline, old: str, request: Request) -> None:
    """The steps of this module's page.

    Args:
        pipeline: of the new name.

    Raises:
        RefusedError: ``rename.folder``, ``rename.first-name``, ``rename.unknown``, ``rename.taken``,
            ``rename.open-run``. Nothing is touched then.
        BusyError: ``lease.held``: a run of either goes on.
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
                (workspace.metastore, old),
            )
        ]
        # Between the first look and the lease a run may have come and gone.
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
        """Beginnings of paths, before and now, in every way in which one is written."""
        found = [(f"{old}/", f"{new}/") for old, new in self._folders]
        for old, new in self._folders:
            found += sorted(spellings(self.storage.path(old), self.storage.path(new)))
        return found

    @property
    def is_switched(self) -> bool:
        """Whether a rename was cut off behind its third step."""
        return self._marked_for == self.old and not self.workspace.metastore.generations(self.old)

    @property
    def _mark(self) -> str:
        return f"{home_of(self.new)}/{_MARK}"

    @property
    def _marked_for(self) -> str | None:
        """The old name of a rename to this one that was begun."""
        return self.storage.read_bytes(self._mark).decode() if self.storage.exists(self._mark) else None

    def refuse(self) -> None:
        """Look at everything that must be so; touches nothing."""
        old, new = self.old, self.new
        if old in pipeline_names(self.workspace.project):
            raise self._refused(
                "folder",
                f"include/pipelines still has {old}",
                f"git mv include/pipelines/{old} include/pipelines/{new}",
            )
        generations = self.workspace.metastore.generations(old)
        if not generations:
            raise self._refused("unknown", f"the metastore knows no checkpoint of {old}", "drawdown runs")
        first = str(generations[-1].fingerprint.get("sink.name", old))
        if self.pipeline.name_in_sink != first:
            raise self._refused(
                "first-name",
                f"the sink knows the batches of {old} by the name {first}",
                f"write `first_name: {first}` into include/pipelines/{new}/pipeline.yaml",
            )
        theirs = self.workspace.metastore.generations(new) or (
            self._marked_for != old and any(True for _, to in self._folders for _ in self.storage.walk(to))
        )
        if theirs:
            raise self._refused(
                "taken", f"{new} has a checkpoint or files of its own", f"drawdown checkpoint show {new}"
            )
        self._refuse_unfinished()

    def _refuse_unfinished(self) -> None:
        runs = [
            run.run_id
            for side in (self.workspace.metastore, self.workspace.metastore.of_rebuilds)
            for run in side.open_runs(self.old)
            if run.kind != KIND
        ]
        if runs or self.workspace.metastore.open_changes(self.old):
            raise self._refused(
                "open-run",
                f"a run of {self.old} goes on, or has died and left work behind"
                + "".join(f" ({r})" for r in runs),
                f"wait for its end; or give the folder its old name back and `drawdown run {self.old}`",
            )

    def _refused(self, id: str, what: str, do: str) -> RefusedError:
        return RefusedError(
            f"rename.{id}", f"{what}; nothing was changed", where=f"pipeline {self.new}", do=do
        )

    def copy(self) -> None:
        """Make the new folders, whatever an earlier attempt has left of them."""
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
        """Let each generation know it: without `first_name:` the next run is refused then."""
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
        # By time: the last of them has done it, those before were killed.
        asked = sorted(run.run_id for run in self.workspace.metastore.open_runs(self.new) if run.kind == KIND)
        for run_id in asked[:-1]:
            self.workspace.metastore.finish_run(run_id, "crashed")
        for run_id in asked[-1:]:
            self.workspace.metastore.finish_run(
                run_id, "succeeded", stop_reason=f"{self.old} is {self.new} now"
            )
        self.storage.delete(self._mark)

    def _checkpoints(self) -> Iterator[str]:
        """The copies of all checkpoints, those in snapshots too."""
        for generation in self.workspace.metastore.generations(self.old):
            yield f"{home_of(self.new)}/{generation.path.rpartition('/')[2]}"
        for name in snapshot_names(self.storage, self.new):
            yield f"{snapshots_of(self.new)}/{name}/checkpoint"

    def _moved(self, path: str) -> str:
        for old, new in self._folders:
            path = moved(path, self.storage.path(old), self.storage.path(new))
        return path

    def _renamed(self, value: Any) -> Any:
        """What a snapshot has noted, in the new name."""
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
