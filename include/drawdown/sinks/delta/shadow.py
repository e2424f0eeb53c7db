"""The tables of a shadow generation take the place of those in use, each in one commit, and back again.

A shadow lies in a folder inside the table that it is to replace, so a swap moves no file: one commit of that
table removes its files and adds the shadow's, with the shadow's columns. What was done is known from that
table's log alone: a commit that was made is not made again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote

from drawdown.changes.protocol import Commit, conflicts_explained, transaction_id
from drawdown.delta.history import DeltaHistory
from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import SourceError
from drawdown.metastore.records import Change, StagedFile, StagedTable
from drawdown.sinks.locations import output_uri, quarantine_uri
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage

Begin = Callable[[int], Change]
"""Begins a change in the register, given the version of the table that was looked at."""

Undone = Literal["swapped", "rolled-back"]


@dataclass(frozen=True)
class ShadowTable:
    """One table of a pipeline, and what a generation has or had below it.

    Raises (from every method):
        SourceError: a table cannot be reached, read or written.
    """

    project: Project
    shadow: Pipeline
    generation: int
    table: StagedTable

    @property
    def uri(self) -> str:
        """Of the table in use."""
        return self._shadow_uri.removesuffix(f"/{self.shadow.apart}")

    @property
    def _shadow_uri(self) -> str:
        uri = {"output": output_uri, "quarantine": quarantine_uri}[self.table]
        return uri(self.project, self.shadow)

    @property
    def _id(self) -> str:
        return transaction_id(self.shadow.name_in_sink, self.generation, self.table)

    @property
    def version_before(self) -> int:
        """The newest of the table in use, or the one before the swap that was made already."""
        before = self._before("swapped")
        return DeltaTableFiles(self.uri).version if before is None else before

    @property
    def is_swapped(self) -> bool:
        """Whether the shadow has taken its place."""
        return DeltaTableFiles(self.uri).published_version(f"{self._id}/swapped") >= 0

    @property
    def is_back(self) -> bool:
        """Whether it has lost it again."""
        return DeltaTableFiles(self.uri).published_version(f"{self._id}/rolled-back") >= 0

    def refuse_swap(self) -> None:
        """Refuse when files of the shadow are gone. Raises RefusedError ``sink.vacuumed``."""
        shadow = DeltaHistory(self._storage, self._shadow_uri)
        shadow.refuse_vacuumed(
            DeltaTableFiles(self._shadow_uri).version,
            f"`drawdown rebuild discard {self.shadow.name} --why ...`, and start it again",
        )

    def refuse_going_back(self, version: int, do: str) -> None:
        """Refuse when files of a version are gone. Raises RefusedError ``sink.vacuumed``."""
        self._history.refuse_vacuumed(version, do)

    def swap(self, last: int, begin: Begin) -> None:
        """Put the shadow in place of all rows.

        Args:
            last: the last batch of its generation, which goes on behind it.
        """
        shadow, table = DeltaTableFiles(self._shadow_uri), DeltaTableFiles(self.uri)
        if table.published_version(f"{self._id}/swapped") >= 0:
            return
        commit = Commit(self._id, last, begin(table.version), once=f"{self._id}/swapped")
        with conflicts_explained(self.shadow.name, self.table):
            table.overwrite(self._files(shadow), commit, like=shadow)

    def go_back(self, version: int, begin: Begin) -> None:
        """Bring a version of the table back that it had before the swap."""
        if not self.is_back:
            history = self._history
            history.restore(version, begin(history.newest), {f"{self._id}/rolled-back": 0})

    def refuse_undo(self, what: Undone) -> None:
        """Refuse when `undo` needs files of the output that are gone: RefusedError ``sink.vacuumed``."""
        if self.table == "output" and (version := self._before(what)) is not None:
            on = {"swapped": "approve", "rolled-back": "rollback"}[what]
            self._history.refuse_vacuumed(version, f"drawdown rebuild {on} {self.shadow.name} --why ...")

    def undo(self, what: Undone, begin: Begin) -> list[str]:
        """Take a swap or a roll back of this table back, which was not completed; none is no error.

        Returns:
            Files of the quarantine that are gone, so their rows are missing now.
        """
        app_id, version = f"{self._id}/{what}", self._before(what)
        if version is None:
            return []
        history = self._history
        gone = history.gone_files(version)
        history.restore(version, begin(history.newest), {app_id: -1}, without_gone=True)
        return gone

    def _before(self, what: Undone) -> int | None:
        """The version before that commit; None without one."""
        app_id = f"{self._id}/{what}"
        if DeltaTableFiles(self.uri).published_version(app_id) < 0:
            return None
        return self._history.version_with(app_id, -1)[0]

    @property
    def _history(self) -> DeltaHistory:
        return DeltaHistory(self._storage, self.uri)

    @property
    def _storage(self) -> Storage:
        return Storage(self.project.storage_root)

    def _files(self, shadow: DeltaTableFiles) -> list[StagedFile]:
        """The files of the shadow as the table in use names them: with the statistics of their own log."""
        storage = self._storage
        folder = storage.relative(shadow.uri)
        adds: dict[str, dict[str, Any]] = {}
        for entry in sorted(storage.list_files(f"{folder}/_delta_log/*.json"), key=lambda info: info.name):
            for line in storage.read_bytes(entry.relative).splitlines():
                action = json.loads(line)
                if "add" in action:
                    adds[action["add"]["path"]] = action["add"]
                elif "remove" in action:
                    adds.pop(action["remove"]["path"], None)
        if len(adds) != len(shadow.referenced()):
            raise SourceError(
                "sink.unreadable",
                "entries of the log of a rebuild's table are gone",
                where=shadow.uri,
                do=f"`drawdown rebuild discard {self.shadow.name} --why ...`, and start it again",
            )
        return [self._below(add) for add in adds.values()]

    def _below(self, add: dict[str, Any]) -> StagedFile:
        path = f"{self.shadow.apart}/{unquote(add['path'])}"
        rows = int(json.loads(add.get("stats") or "{}").get("numRecords", 0))
        # What takes it over decodes the path, as a log has it encoded.
        action = {**add, "path": path.replace("%", "%25")}
        return StagedFile(self.table, path, int(add["size"]), rows, action)


def shadow_tables(project: Project, shadow: Pipeline, generation: int) -> list[ShadowTable]:
    """Both tables of a pipeline, in the order in which they are swapped: readers look at the last."""
    return [ShadowTable(project, shadow, generation, table) for table in ("quarantine", "output")]
