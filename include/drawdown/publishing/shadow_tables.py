"""The tables of a shadow generation take the place of those in use, each in one commit, and back again.

A shadow lies in a folder inside the table that it is to replace, so a swap moves no file: one commit of that
table removes its files and adds the shadow's, with the shadow's columns. What was done is told by that
table's log alone: a commit that was made is not made again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from drawdown.errors import SourceError
from drawdown.metastore.records import StagedFile, StagedTable
from drawdown.publishing.delta_history import DeltaHistory
from drawdown.publishing.delta_table import DeltaTableFiles
from drawdown.publishing.target import Commit, transaction_id
from drawdown.publishing.targets import output_uri, quarantine_uri
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage


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
        return transaction_id(self.shadow.name, self.generation, self.table)

    @property
    def version(self) -> int:
        """The newest of the table in use."""
        return DeltaTableFiles(self.uri).version

    @property
    def is_swapped(self) -> bool:
        """Whether the shadow has taken its place."""
        return DeltaTableFiles(self.uri).published_version(f"{self._id}/swapped") >= 0

    @property
    def is_back(self) -> bool:
        """Whether it has lost it again."""
        return DeltaTableFiles(self.uri).published_version(f"{self._id}/rolled-back") >= 0

    def swap(self, last: int, epoch: int, info: Mapping[str, str]) -> None:
        """Put the shadow in place of all rows.

        Args:
            last: the last batch of its generation, which goes on behind it.
        """
        if self.is_swapped:
            return
        shadow, table = DeltaTableFiles(self._shadow_uri), DeltaTableFiles(self.uri)
        commit = Commit(self._id, last, epoch, info, once=f"{self._id}/swapped")
        table.overwrite(self._files(shadow), commit, like=shadow)

    def go_back(self, version: int) -> None:
        """Bring a version of the table back that it had before the swap."""
        if not self.is_back:
            self._history.restore(version, 0, f"{self._id}/rolled-back")

    @property
    def _history(self) -> DeltaHistory:
        return DeltaHistory(Storage(self.project.storage_root), self.uri)

    def _files(self, shadow: DeltaTableFiles) -> list[StagedFile]:
        """The files of the shadow as the table in use names them: with the statistics of their own log."""
        storage = Storage(self.project.storage_root)
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
