"""Publish staged files in a Delta table: append them, merge them by key, or replace all rows.

Each publish is one commit that carries its transaction id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from drawdown.changes.protocol import Commit, NewRows, Staged
from drawdown.delta.table import DeltaTableFiles
from drawdown.metastore.records import Change, Lease, StagedFile
from drawdown.sinks.locations import output_uri
from drawdown.sinks.upsert import latest_rows
from drawdown.spec import Pipeline, Project
from drawdown.spec.sink import OutputMode
from drawdown.storage import Storage
from drawdown.storage.parquet_file import parquet_parts


@dataclass(frozen=True)
class DeltaTarget:
    """A Delta table that takes batches in one output mode; see Target and Replaceable for the methods."""

    storage: Storage
    table: DeltaTableFiles
    mode: OutputMode = "append"
    keys: Sequence[str] = ()

    @property
    def based_on(self) -> int | None:
        return self.table.version

    def published_batch(self, app_id: str) -> int:
        return self.table.published_version(app_id)

    begun_batch = published_batch

    def make_visible(self, staged: Staged, commit: Commit) -> None:
        """Publish these batches in one commit; without changes, make no commit."""
        files = [file for _, file in staged.files]
        if self.mode == "complete":
            self._replace_all(staged, commit)
        elif self.mode == "update":
            if any(file.rows for file in files):
                self.table.merge(latest_rows(self.storage, staged.files, self.keys), self.keys, commit)
        elif files:
            self.table.append(files, commit)

    def holds(self, change: Change, app_id: str) -> bool:
        return self.table.has_change(change)

    def fence(self, lease: Lease) -> None:
        self.table.fence(lease)

    def replace(self, new: NewRows) -> bool:
        # The table is opened here: `replace` notices every later commit that touches the interval.
        if new.overtaken(self.table.published_version(new.app_id)):
            return False
        change = new.begin(self.table.version)
        return self.table.replace(new.column, new.interval, self._rows(new.files), change, new.info)

    def _rows(self, files: Sequence[StagedFile]) -> Iterator[Any]:
        """Yield pyarrow RecordBatches, file by file."""
        for file in files:
            yield from parquet_parts(self.storage, self.storage.relative(file.path))

    def _replace_all(self, staged: Staged, commit: Commit) -> None:
        """Replace all rows by the last batch's snapshot; readers never see the batches before it.

        Files of earlier batches are deleted after the commit: until then a rewind may make one of those
        batches the last again. Files that a crash leaves belong to no version of the table and to no waiting
        batch: upkeep removes them.
        """
        last = staged.batch_ids[-1]
        self.table.overwrite([file for batch_id, file in staged.files if batch_id == last], commit)
        for batch_id, file in staged.files:
            if batch_id != last:
                self.storage.delete(self.storage.relative(file.path))


def output_target(project: Project, pipeline: Pipeline, keys: Sequence[str]) -> DeltaTarget:
    """Return the target of the pipeline's sink."""
    files = DeltaTableFiles(output_uri(project, pipeline))
    return DeltaTarget(Storage.of(project), files, pipeline.sink.mode, keys)
