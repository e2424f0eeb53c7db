"""Swap the tables of a shadow generation with the tables in use, one commit per table, and swap them back.

A shadow table is a folder inside the table that it will replace, so a swap moves no file: one commit of the
table in use removes its own files and adds the shadow's, with the shadow's columns. The log of that table
shows what was done, so no commit is made twice.
"""

from __future__ import annotations

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
from drawdown.values.commands import rebuild_again
from drawdown.values.json_text import read_json

Begin = Callable[[int], Change]
"""Registers a change, given the version of the table that was read."""

Undone = Literal["swapped", "rolled-back"]


@dataclass(frozen=True)
class ShadowTable:
    """One table of a pipeline, with the shadow table of a generation in a folder below it.

    Raises (from every method):
        SourceError: a table cannot be reached, read or written.
    """

    project: Project
    shadow: Pipeline
    generation: int
    table: StagedTable

    @property
    def uri(self) -> str:
        """Return the URI of the table in use."""
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
        """Return the newest version of the table in use; after a swap, the version before it."""
        before = self._before("swapped")
        return DeltaTableFiles(self.uri).version if before is None else before

    @property
    def is_swapped(self) -> bool:
        """Whether the shadow was swapped in."""
        return DeltaTableFiles(self.uri).published_version(f"{self._id}/swapped") >= 0

    @property
    def is_back(self) -> bool:
        """Whether the swap was rolled back."""
        return DeltaTableFiles(self.uri).published_version(f"{self._id}/rolled-back") >= 0

    def refuse_swap(self) -> None:
        """Refuse when files of the shadow are gone. Raises RefusedError ``sink.vacuumed``."""
        shadow = DeltaHistory(self._storage, self._shadow_uri)
        shadow.refuse_vacuumed(
            DeltaTableFiles(self._shadow_uri).version,
            rebuild_again(self.shadow.name),
        )

    def refuse_going_back(self, version: int, do: str) -> None:
        """Refuse when files of a version are gone. Raises RefusedError ``sink.vacuumed``."""
        self._history.refuse_vacuumed(version, do)

    def swap(self, last: int, begin: Begin) -> None:
        """Replace all rows of the table in use by the shadow's.

        Args:
            last: the last batch of the shadow's generation, which continues after it.
        """
        shadow, table = DeltaTableFiles(self._shadow_uri), DeltaTableFiles(self.uri)
        if table.published_version(f"{self._id}/swapped") >= 0:
            return
        commit = Commit(self._id, last, begin(table.version), once=f"{self._id}/swapped")
        with conflicts_explained(self.shadow.name, self.table):
            table.overwrite(self._files(shadow), commit, like=shadow)

    def go_back(self, version: int, begin: Begin) -> None:
        """Restore a version of the table from before the swap."""
        if not self.is_back:
            history = self._history
            history.restore(version, begin(history.newest), {f"{self._id}/rolled-back": 0})

    def refuse_undo(self, what: Undone) -> None:
        """Refuse when `undo` needs missing files of the output. Raises RefusedError ``sink.vacuumed``."""
        if self.table == "output" and (version := self._before(what)) is not None:
            on = {"swapped": "approve", "rolled-back": "rollback"}[what]
            self._history.refuse_vacuumed(version, f"drawdown rebuild {on} {self.shadow.name} --why ...")

    def undo(self, what: Undone, begin: Begin) -> list[str]:
        """Undo an incomplete swap or roll back of this table; do nothing when there is none.

        Returns:
            Files that are missing, so their rows are missing now; only of the quarantine, see `refuse_undo`.
        """
        app_id, version = f"{self._id}/{what}", self._before(what)
        if version is None:
            return []
        history = self._history
        gone = history.gone_files(version)
        history.restore(version, begin(history.newest), {app_id: -1}, without_gone=True)
        return gone

    def _before(self, what: Undone) -> int | None:
        """Return the version before that commit; None without that commit."""
        app_id = f"{self._id}/{what}"
        if DeltaTableFiles(self.uri).published_version(app_id) < 0:
            return None
        return self._history.version_with(app_id, -1)[0]

    @property
    def _history(self) -> DeltaHistory:
        return DeltaHistory(self._storage, self.uri)

    @property
    def _storage(self) -> Storage:
        return Storage.of(self.project)

    def _files(self, shadow: DeltaTableFiles) -> list[StagedFile]:
        """Return the shadow's files, named as the table in use does, with the statistics of their own log."""
        storage = self._storage
        folder = storage.relative(shadow.uri)
        adds: dict[str, dict[str, Any]] = {}
        for entry in sorted(storage.list_files(f"{folder}/_delta_log/*.json"), key=lambda info: info.name):
            for line in storage.read_bytes(entry.relative).splitlines():
                action = read_json(line)
                if "add" in action:
                    adds[action["add"]["path"]] = action["add"]
                elif "remove" in action:
                    adds.pop(action["remove"]["path"], None)
        if len(adds) != len(shadow.referenced()):
            raise SourceError(
                "sink.unreadable",
                "log entries of a rebuild's table are missing",
                where=shadow.uri,
                do=rebuild_again(self.shadow.name),
            )
        return [self._below(add) for add in adds.values()]

    def _below(self, add: dict[str, Any]) -> StagedFile:
        path = f"{self.shadow.apart}/{unquote(add['path'])}"
        rows = int(read_json(add.get("stats") or "{}").get("numRecords", 0))
        # Paths in a Delta log are encoded, and the commit that adds this file decodes them.
        action = {**add, "path": path.replace("%", "%25")}
        return StagedFile(self.table, path, int(add["size"]), rows, action)


def shadow_tables(project: Project, shadow: Pipeline, generation: int) -> list[ShadowTable]:
    """Return both tables of a pipeline in swap order; the output, which readers see, comes last."""
    return [ShadowTable(project, shadow, generation, table) for table in ("quarantine", "output")]
