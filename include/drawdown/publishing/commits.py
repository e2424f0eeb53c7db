"""How staged files become visible in a Delta table, by output mode: added, merged by key, or in place of all.

Each is one commit that carries its transaction id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drawdown.metastore.records import StagedFile
from drawdown.publishing.delta_table import Commit, DeltaTableFiles
from drawdown.publishing.upsert import latest_rows
from drawdown.spec.sink import OutputMode
from drawdown.storage import Storage


@dataclass(frozen=True)
class Staged:
    """What one publish has before it: the new batches' ids in order, and their files by batch id."""

    batch_ids: Sequence[int]
    files: Sequence[tuple[int, StagedFile]]


def make_visible(
    storage: Storage,
    target: DeltaTableFiles,
    mode: OutputMode,
    keys: Sequence[str],
    staged: Staged,
    commit: Commit,
) -> None:
    """One commit of these batches; none when they change nothing.

    Raises:
        SourceError: the table cannot be reached or written.
    """
    files = [file for _, file in staged.files]
    if mode == "complete":
        _replace_all(storage, target, staged, commit)
    elif mode == "update":
        rows = latest_rows(storage, files, keys)
        if rows is not None:
            target.merge(rows, keys, commit)
    elif files:
        target.append(files, commit)


def _replace_all(storage: Storage, target: DeltaTableFiles, staged: Staged, commit: Commit) -> None:
    """The last batch's snapshot takes the place of all rows; those before it will never be seen.

    They go first: once the commit is there, nobody could tell a snapshot that was never visible from one
    that was, and that one belongs to the table's history. A crash in between changes nothing: the same
    last batch is published by the next try.
    """
    last = staged.batch_ids[-1]
    for batch_id, file in staged.files:
        if batch_id != last:
            storage.delete(storage.relative(file.path))
    target.overwrite([file for batch_id, file in staged.files if batch_id == last], commit)
