"""Move: updates file paths in checkpoint and metastore after the storage root was copied.

Of every generation:

1  refuse if unpublished rows were not copied
2  update the metastore's paths, and the file times that the copy changed, in one transaction each
3  rewrite the logs of files, entry by entry, the newest last: until then no run starts (storage.moved), and
   running the command again completes it

Offsets, state and Delta tables contain no absolute paths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from drawdown.checkpoint import plain_path
from drawdown.checkpoint.roots import moved, spellings
from drawdown.errors import RefusedError
from drawdown.metastore.records import UNPUBLISHED, FileMark, Lease
from drawdown.plan.moved_storage import logs_of_files
from drawdown.recovery.repair.faults import sink_log
from drawdown.storage import Glob, Storage
from drawdown.workspace import Generation


@dataclass(frozen=True)
class Moved:
    """How many log lines and metastore rows were updated."""

    lines: int
    rows: int


def move(generation: Generation, old: str, current: Callable[[], Lease]) -> Moved:
    """Change all file paths below `old` to paths below the project's storage root.

    Raises:
        RefusedError: ``move.nothing``: no path is below it; ``move.not-copied``: a staged file is missing
            here.
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
            f"{generation.pipeline.name} has no file paths below {old}, neither in its checkpoint nor in"
            " the metastore",
            where=generation.storage.path(generation.path),
            do=f"`drawdown plan {generation.pipeline.name}` shows the root that they use, if it differs",
        )
    return Moved(lines, rows)


def _every(generation: Generation) -> list[Generation]:
    """Return all generations, including a rebuild's and those for a roll back; the live one is last."""
    there = generation.metastore.generations(generation.pipeline.name)
    others = [each for each in there if each != generation.checkpoint]
    return [*(replace(generation, checkpoint=each) for each in others), generation]


def _refuse_uncopied(generation: Generation, old: str) -> None:
    """Refuse if staged rows were not copied: rows that wait for an audit or a decision exist only once."""
    storage, waiting = generation.storage, generation.batches(UNPUBLISHED)
    for _, file in generation.staged_files(batch.batch_id for batch in waiting):
        for before, after in spellings(old, storage.root):
            here = after + file.path.removeprefix(before)
            if file.path.startswith(before) and not storage.exists(storage.relative(here)):
                raise RefusedError(
                    "move.not-copied",
                    f"unpublished rows of {generation.pipeline.name} were not copied",
                    where=here,
                    do="copy everything below the old root, including `_drawdown`, then run the command"
                    " again",
                )


def _take_new_sink(generation: Generation, old: str, current: Callable[[], Lease]) -> None:
    """Record a file sink's new folder: it is identified by its path."""
    fingerprint = generation.checkpoint.fingerprint if generation.checkpoint else {}
    sink = str(fingerprint.get("sink.identity", ""))
    for before, after in spellings(old, generation.storage.root):
        if sink.startswith(before):
            new = {**fingerprint, "sink.identity": after + sink.removeprefix(before)}
            generation.metastore.update_fingerprint(current(), generation.number, new)


def _take_new_times(generation: Generation, current: Callable[[], Lease]) -> None:
    """Record the new modification times: a copied file of the same size counts as the same."""
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
