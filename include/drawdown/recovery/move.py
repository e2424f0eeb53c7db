"""Move: a storage root was copied to another place; the checkpoint and the metastore name files there now.

Of every generation:

1  refuse when rows that wait were not copied
2  the metastore's paths, and the times of files that the copy has changed, in one transaction each
3  the logs of files, entry by entry, the newest last: from its first line on until then no run starts
   (storage.moved), and the same command again completes it

Offsets, state and a Delta table name no absolute paths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from drawdown.checkpoint import plain_path
from drawdown.checkpoint.roots import moved, spellings
from drawdown.errors import RefusedError
from drawdown.metastore.records import UNPUBLISHED, FileMark, Lease
from drawdown.plan.moved import logs_of_files
from drawdown.recovery.faults import sink_log
from drawdown.storage import Glob, Storage
from drawdown.workspace import Generation


@dataclass(frozen=True)
class Moved:
    """How many lines of logs and rows of the metastore name files in the new root now."""

    lines: int
    rows: int


def move(generation: Generation, old: str, current: Callable[[], Lease]) -> Moved:
    """Let all that named files below `old` name them below the project's storage root.

    Raises:
        RefusedError: ``move.nothing``: no file is named there; ``move.not-copied``: a staged one is not here.
        SourceError: the storage cannot be reached.
    """
    old, new = Storage(old).root, generation.storage.root
    every = _every(generation)
    logs = [log for each in every for log in logs_of_files(each.storage, each.files, sink_log(each))]
    for each in every:
        _refuse_uncopied(each, old)
    rows = lines = 0
    for each in every:
        rows += each.metastore.move_files(current(), each.number, spellings(old, new))
        _take_new_times(each, current)
        _take_new_sink(each, old, current)
    for log in logs:
        current()
        lines += log.rename(lambda path: moved(path, old, new))
    if not lines and not rows:
        raise RefusedError(
            "move.nothing",
            f"{generation.pipeline.name} names no file below {old}, in its checkpoint or in the metastore",
            where=generation.storage.path(generation.path),
            do=f"`drawdown plan {generation.pipeline.name}` says which root they name, if it is another",
        )
    return Moved(lines, rows)


def _every(generation: Generation) -> list[Generation]:
    """That of a rebuild, and what a roll back needs, too; the live one is the last."""
    there = generation.metastore.generations(generation.pipeline.name)
    others = [each for each in there if each != generation.checkpoint]
    return [*(replace(generation, checkpoint=each) for each in others), generation]


def _refuse_uncopied(generation: Generation, old: str) -> None:
    """Rows that wait for their audit or a decision are nowhere else."""
    storage, waiting = generation.storage, generation.batches(UNPUBLISHED)
    for _, file in generation.staged_files(batch.batch_id for batch in waiting):
        for before, after in spellings(old, storage.root):
            here = after + file.path.removeprefix(before)
            if file.path.startswith(before) and not storage.exists(storage.relative(here)):
                raise RefusedError(
                    "move.not-copied",
                    f"rows of {generation.pipeline.name} that wait to be published were not copied",
                    where=here,
                    do="copy all that was below the old root, `_drawdown` too, then move again",
                )


def _take_new_sink(generation: Generation, old: str, current: Callable[[], Lease]) -> None:
    """A folder of files is known by where it is."""
    fingerprint = generation.checkpoint.fingerprint if generation.checkpoint else {}
    sink = str(fingerprint.get("sink.identity", ""))
    for before, after in spellings(old, generation.storage.root):
        if sink.startswith(before):
            new = {**fingerprint, "sink.identity": after + sink.removeprefix(before)}
            generation.metastore.update_fingerprint(current(), generation.number, new)


def _take_new_times(generation: Generation, current: Callable[[], Lease]) -> None:
    """A copy may have another time of change; a file of the same size is taken for the same."""
    storage = generation.storage
    for name, source in generation.pipeline.sources.items():
        marks = generation.metastore.read_files(generation.pipeline.name, generation.number, name)
        folders = {glob.prefix for glob in Glob.parse(source.path)} if source.path and marks else set()
        here = (info for folder in folders for info in storage.walk(folder))
        now = {plain_path(info.path): FileMark(info.size, info.mtime_ms) for info in here}
        other = {
            path: now[path]
            for path, mark in marks.items()
            if path in now and now[path].size == mark.size and now[path] != mark
        }
        if other:
            generation.metastore.note_read_files(current(), generation.number, name, other)
