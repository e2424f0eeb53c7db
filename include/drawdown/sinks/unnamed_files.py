"""The one way of deleting staged files: of those that a version of their table names, none goes.

The metastore alone may be wrong about what readers see: it may be an older copy, a commit may have an unknown
outcome, the spec may have changed since the rows were staged. Readers of such a version need its files until
upkeep removes the version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drawdown.delta.log import TableLog
from drawdown.delta.table import DeltaTableFiles
from drawdown.metastore.records import StagedFile
from drawdown.sinks.locations import output_uri, quarantine_uri
from drawdown.storage import Storage
from drawdown.workspace import Generation


def remove_unnamed(generation: Generation, files: Iterable[StagedFile]) -> None:
    """Delete staged files of a generation, except those that their tables name; a missing file is no error.

    Raises:
        SourceError: a table cannot be read; its files stay.
    """
    staged, project, pipeline = list(files), generation.project, generation.pipeline
    apart = [file for file in staged if file.table == "output" and pipeline.sink.format != "delta"]
    for file in apart:  # no table ever names files that wait apart from it
        generation.storage.delete(generation.storage.relative(file.path))
    for table, uri in (("output", output_uri), ("quarantine", quarantine_uri)):
        if own := [file for file in staged if file.table == table and file not in apart]:
            remove_unnamed_of(generation.storage, uri(project, pipeline), own)


def remove_unnamed_of(storage: Storage, uri: str, files: Sequence[StagedFile]) -> None:
    """Delete files that were staged for the table at `uri`, if there is one, except those that it names."""
    named = TableLog(storage, uri).named_since(0) if files and DeltaTableFiles(uri).exists() else set()
    for file in files:
        if file.path not in named:
            storage.delete(storage.relative(file.path))
