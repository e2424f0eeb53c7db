"""Ending a rebuild: swapped in by one commit of the table, discarded, or rolled back. None needs Spark.

A swap, under the leases of drains, of rebuilds and of replays' commits:

 1  check whether anything refuses it
 2  record that it is in progress, with each table's version before it
 3  the quarantine's commit, then the output's: from here on readers see the new generation
 4  record that the new generation is live and the old one retired

If it is killed between 2 and 4, every other command is refused and running the same command again continues
from the tables' logs; if it cannot, `discard` undoes a swap, and `approve` a roll back. A roll back has the
same steps in reverse.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import DrawdownError, RefusedError
from drawdown.fault_points import durable
from drawdown.layout import generation_folders
from drawdown.metastore.records import Change, ChangeKind, Checkpoint, GenerationState, Lease, Run
from drawdown.publishing.clean_up import clean_up_changes
from drawdown.publishing.dead_runs import close_dead_runs
from drawdown.rebuild.plan import without_steps
from drawdown.rebuild.refusals import (
    REBUILD_OLD,
    last_batch,
    live_of,
    refuse_another,
    refuse_pruned,
    refuse_roll_back,
    refuse_swap,
)
from drawdown.sinks.delta.shadow import Begin, ShadowTable, Undone, shadow_tables
from drawdown.sinks.delta.shown_generation import is_swapped_in, refuse_other_generation
from drawdown.sinks.locations import output_uri, quarantine_uri
from drawdown.sinks.staging_folder import staging_folder
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage
from drawdown.values.text import counted
from drawdown.workspace import Workspace

KINDS: Mapping[str, str] = {
    "approve": "rebuild-swap",
    "discard": "rebuild-discard",
    "rollback": "rebuild-rollback",
}
"""Kinds of run records, by decision."""


@dataclass(frozen=True)
class RebuildDecision:
    """A decision about a rebuild, by whom and why; `origin`: what else the run record keeps.

    Attributes:
        about: `rebuild_id` of the rebuild that was shown for the decision; None: the current one.
    """

    choice: Literal["approve", "discard", "rollback"]
    run_id: str
    holder: str
    by: str
    why: str
    origin: Mapping[str, Any] = field(default_factory=dict)
    about: str | None = None


def end_rebuild(workspace: Workspace, pipeline: Pipeline, asked: RebuildDecision) -> Run:
    """Carry out the decision; the run record describes the result.

    Args:
        pipeline: the rebuilt version.

    Raises:
        BusyError: a drain, a rebuild or the commit of a replay is in progress.
        RefusedError: ``rebuild.none``, ``rebuild.another``, and see refusals.py; nothing is changed.
        SourceError: a table cannot be reached; the same call completes it.
    """
    with _leases(workspace, pipeline.name, asked) as leases:
        lease, shadow_lease, replay_lease = leases
        who = {**asked.origin, "by": asked.by, "why": asked.why}
        workspace.metastore.start_run(
            Run(asked.run_id, pipeline.name, kind=KINDS[asked.choice], holder=asked.holder, origin=who)
        )
        work = _Ending(workspace, pipeline, asked, lease, shadow_lease)
        try:
            work.clean_up(replay_lease)
            generation, said = getattr(work, asked.choice)()
        except DrawdownError as error:
            workspace.metastore.finish_run(asked.run_id, "failed", error=error.as_dict())
            raise
        return workspace.metastore.finish_run(
            asked.run_id, "succeeded", generation=generation, stop_reason=said
        )


@contextmanager
def _leases(workspace: Workspace, name: str, asked: RebuildDecision) -> Iterator[list[Lease]]:
    ttl = workspace.project.lease_ttl.delta
    with ExitStack() as stack:
        taken = []
        # Of drains, of rebuilds, and of the commits of replays.
        for store, of in (
            (workspace.metastore, name),
            (workspace.metastore.of_rebuilds, name),
            (workspace.metastore, f"{name}#replay"),
        ):
            taken.append(store.acquire(of, asked.holder, asked.run_id, ttl))
            stack.callback(store.release, taken[-1])
        yield taken


@dataclass(frozen=True)
class _Ending:
    """The three decisions; each returns its generation and a sentence about what happened."""

    workspace: Workspace
    pipeline: Pipeline
    asked: RebuildDecision
    lease: Lease
    shadow_lease: Lease

    def clean_up(self, replay_lease: Lease) -> None:
        """Close changes of crashed holders of any of the leases; a shadow's changes are in its own tables."""
        for lease in (self.lease, replay_lease):
            clean_up_changes(self.workspace, lease, self.pipeline)
        if (shadow := self._found("shadow")) is not None:
            clean_up_changes(self.workspace, self.shadow_lease, self._as_shadow(shadow))

    def approve(self) -> tuple[int, str]:
        if (leaving := self._found("leaving")) is not None:
            refuse_another(leaving, self.asked.about)
            return self._stay(leaving)
        shadow = self._found("swapping") or self._shadow()
        refuse_another(shadow, self.asked.about)
        if shadow.state != "swapping":
            live = live_of(self.workspace.metastore, self.pipeline.name)
            if not is_swapped_in(self.workspace.project, self.pipeline, shadow.generation):
                refuse_other_generation(self.workspace, self.pipeline)
                refuse_swap(self.workspace, self.pipeline, live, shadow)
            self._refuse_gone_shadow(shadow)
            self._close_dead_runs(live, shadow)
            shadow = self._begin_swap(live, shadow)
        else:
            self._refuse_gone_shadow(shadow)
        before, tables = shadow.rebuild["before"], self._tables(shadow)
        last = last_batch(self.workspace.metastore, shadow)
        try:
            for table in tables:
                with durable("rebuild.swap"), self._changing(table, "swap") as begin:
                    table.swap(last, begin)
        except DrawdownError:
            if not any(table.is_swapped for table in tables):
                self._note({shadow.generation: {"state": "shadow"}})
            raise
        # Of the table that is drained into from now on.
        identity = {"sink.identity": DeltaTableFiles(tables[-1].uri).table_id}
        fingerprint = {**without_steps(shadow.fingerprint, self.pipeline), **identity}
        with durable("rebuild.note"):
            self._note(
                {
                    before["generation"]: {"state": "retired"},
                    shadow.generation: {"state": "live", "fingerprint": fingerprint},
                }
            )
        return shadow.generation, (
            f"generation {shadow.generation} is live; generation {before['generation']} and version"
            f" {before['output']} of the table stay until they are pruned"
        )

    def _begin_swap(self, live: Checkpoint, shadow: Checkpoint) -> Checkpoint:
        before: dict[str, int] = {table.table: table.version_before for table in self._tables(shadow)}
        rebuild = {
            **shadow.rebuild,
            "before": {**before, "generation": live.generation},
            "swap": {"by": self.asked.by, "why": self.asked.why, "run_id": self.asked.run_id},
        }
        with durable("rebuild.begin"):
            self._note({shadow.generation: {"state": "swapping", "rebuild": rebuild}})
        begun = self._found("swapping")
        assert begun is not None
        return begun

    def rollback(self) -> tuple[int, str]:
        live = self._found("leaving")
        if live is None:
            live = live_of(self.workspace.metastore, self.pipeline.name)
            if not all(table.is_back for table in self._tables(live)):
                refuse_other_generation(self.workspace, self.pipeline)
                refuse_roll_back(self.workspace, self.pipeline, live)
            self._refuse_gone_before(live, REBUILD_OLD)
            self._close_dead_runs(live)
            with durable("rollback.begin"):
                self._note({live.generation: {"state": "leaving"}})
        else:
            name, number = self.pipeline.name, live.generation
            on = f"`drawdown rebuild approve {name} --why ...` keeps generation {number}"
            refuse_pruned(self.workspace, live, on)
            self._refuse_gone_before(live, on)
        before, tables = live.rebuild["before"], self._tables(live)
        try:
            for table in tables:
                with durable("rollback.commit"), self._changing(table, "rollback") as begin:
                    table.go_back(before[table.table], begin)
        except DrawdownError:
            if not any(table.is_back for table in tables):
                self._note({live.generation: {"state": "live"}})
            raise
        with durable("rollback.note"):
            self._note(
                {live.generation: {"state": "retired"}, before["generation"]: {"state": "live"}},
            )
        return before["generation"], (
            f"generation {before['generation']} is live again, and the table as it was in version"
            f" {before['output']}; data that was drained since the swap is read again"
        )

    def _stay(self, leaving: Checkpoint) -> tuple[int, str]:
        """Undo an interrupted roll back: its generation stays live."""
        gone = self._undo(leaving, "rolled-back")
        self._note({leaving.generation: {"state": "live"}})
        return leaving.generation, f"generation {leaving.generation} stays live{_missing(gone)}"

    def discard(self) -> tuple[int, str]:
        shadow = self._found("swapping")
        if shadow is not None:
            refuse_another(shadow, self.asked.about)
            gone = self._undo(shadow, "swapped")
        else:
            shadow, gone = self._shadow(), []
            refuse_another(shadow, self.asked.about)
            # Its files are those of the table where it was swapped in.
            refuse_other_generation(self.workspace, self.pipeline)
        with durable("rebuild.discard"):
            self.workspace.metastore.change_generations(
                self.shadow_lease, {shadow.generation: {"state": "retired"}}
            )
        remove_shadow(self.workspace.project, self._as_shadow(shadow), shadow.generation)
        return shadow.generation, (
            f"generation {shadow.generation} was discarded; its files are deleted{_missing(gone)}"
        )

    def _undo(self, checkpoint: Checkpoint, what: Undone) -> list[str]:
        tables = self._tables(checkpoint)
        for table in tables:
            table.refuse_undo(what)
        gone: list[str] = []
        for table in tables:
            with self._changing(table, "restore") as begin:
                gone += table.undo(what, begin)
        return gone

    def _refuse_gone_shadow(self, shadow: Checkpoint) -> None:
        for table in self._tables(shadow):
            if not table.is_swapped:
                table.refuse_swap()

    def _refuse_gone_before(self, live: Checkpoint, do: str) -> None:
        for table in self._tables(live):
            if not table.is_back:
                table.refuse_going_back(live.rebuild["before"][table.table], do)

    def _close_dead_runs(self, live: Checkpoint, shadow: Checkpoint | None = None) -> None:
        """Leftovers of one generation's crashed run must not be searched while another is in use."""
        close_dead_runs(self.workspace.metastore, self.lease, live)
        if shadow is not None:
            close_dead_runs(self.workspace.metastore.of_rebuilds, self.shadow_lease, shadow)

    def _shadow(self) -> Checkpoint:
        shadow = self.workspace.metastore.of_rebuilds.active_checkpoint(self.pipeline.name)
        if shadow is None:
            name = self.pipeline.name
            raise RefusedError(
                "rebuild.none",
                f"there is no rebuild of {name} to {self.asked.choice}",
                where=f"pipeline {name}",
                do=f"`drawdown rebuild start {name}` starts one; `drawdown runs {name}` shows what happened"
                " to the last",
            )
        return shadow

    def _found(self, state: GenerationState) -> Checkpoint | None:
        there = self.workspace.metastore.generations(self.pipeline.name)
        return next((each for each in there if each.state == state), None)

    def _as_shadow(self, checkpoint: Checkpoint) -> Pipeline:
        return self.pipeline.as_shadow(checkpoint.generation, {})

    def _tables(self, checkpoint: Checkpoint) -> Sequence[ShadowTable]:
        return shadow_tables(self.workspace.project, self._as_shadow(checkpoint), checkpoint.generation)

    def _note(self, changes: Mapping[int, Mapping[str, Any]]) -> None:
        """Of generations that the metastore still knows."""
        known = {each.generation for each in self.workspace.metastore.generations(self.pipeline.name)}
        self.workspace.metastore.change_generations(
            self.lease, {number: values for number, values in changes.items() if number in known}
        )

    @contextmanager
    def _changing(self, table: ShadowTable, kind: ChangeKind) -> Iterator[Begin]:
        """Register the table's change; it stays open until the block ends without an error."""
        begun: list[Change] = []

        def begin(based_on: int) -> Change:
            change = Change(
                uuid.uuid4().hex, self.pipeline.name, table.table, table.generation, kind, self.asked.run_id,
                scope={"generation": table.generation}, based_on=based_on,
            )  # fmt: skip
            begun.append(self.workspace.metastore.begin_change(self.lease, change))
            return begun[-1]

        yield begin
        self.workspace.metastore.end_changes([change.change_id for change in begun], "committed")


def _missing(gone: list[str]) -> str:
    return (
        f"; rows of {counted(len(gone), 'file')} of the quarantine are missing, for example {gone[0]}"
        if gone
        else ""
    )


def remove_shadow(project: Project, shadow: Pipeline, generation: int) -> None:
    """Remove all files of a shadow that was never swapped in; can be repeated."""
    storage = Storage.of(project)
    tables = (storage.relative(uri(project, shadow)) for uri in (output_uri, quarantine_uri))
    for folder in (*generation_folders(shadow.name, generation), *tables, staging_folder(shadow)):
        storage.delete(folder)
