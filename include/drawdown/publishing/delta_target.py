"""How staged files become visible in a Delta table, by output mode: added, merged by key, or in place of all.

Each is one commit that carries its transaction id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from drawdown.publishing.delta_table import DeltaTableFiles
from drawdown.publishing.target import Commit, Staged
from drawdown.publishing.upsert import latest_rows
from drawdown.spec.sink import OutputMode
from drawdown.storage import Storage


@dataclass(frozen=True)
class DeltaTarget:
    """A Delta table that takes batches in one output mode; see Target for the methods."""

    storage: Storage
    table: DeltaTableFiles
    mode: OutputMode = "append"
    keys: Sequence[str] = ()
    atomic: ClassVar[bool] = True

    def published_batch(self, app_id: str) -> int:
        return self.table.published_version(app_id)

    begun_batch = published_batch

    def make_visible(self, staged: Staged, commit: Commit) -> None:
        """One commit of these batches; none when they change nothing."""
        files = [file for _, file in staged.files]
        if self.mode == "complete":
            self._replace_all(staged, commit)
        elif self.mode == "update":
            rows = latest_rows(self.storage, files, self.keys)
            if rows is not None:
                self.table.merge(rows, self.keys, commit)
        elif files:
            self.table.append(files, commit)

    def _replace_all(self, staged: Staged, commit: Commit) -> None:
        """The last batch's snapshot takes the place of all rows; those before it will never be seen.

        They go first: once the commit is there, nobody could tell a snapshot that was never visible from
        one that was, and that one belongs to the table's history. A crash in between changes nothing: the
        same last batch is published by the next try.
        """
        last = staged.batch_ids[-1]
        for batch_id, file in staged.files:
            if batch_id != last:
                self.storage.delete(self.storage.relative(file.path))
        self.table.overwrite([file for batch_id, file in staged.files if batch_id == last], commit)
