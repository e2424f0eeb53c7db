"""The files that a replay reads: all that the live query has read, if they still exist."""

from __future__ import annotations

from drawdown.checkpoint import SeenFile, plain_path
from drawdown.errors import RefusedError
from drawdown.sources.files.all_files import list_source_files
from drawdown.sources.files.set_aside import left_out, read_set_aside
from drawdown.sources.replay_basis import ReplayedSource
from drawdown.sources.replay_bound import does_without, from_then_on, newest_until


def files_to_read(of: ReplayedSource) -> list[str]:
    """Return absolute paths of the files of a source that a replay of its interval reads.

    Raises:
        RefusedError: ``replay.files-gone``; ``source`` errors of the listing.
    """
    given = {option.lower(): value for option, value in of.source.options.items()}
    found = list_source_files(of.storage, of.source.path or "", given)
    there = {plain_path(info.path) for info in found}
    kept = read_set_aside(of.workspace.storage, of.pipeline.name, of.name)
    aside = left_out(kept, of.storage, found) if kept else set()
    read = [file for file in of.basis.past.read_files(of.name) if file.path not in aside]
    gone = [file for file in read if file.path not in there]
    if gone:
        _refuse_gone(of, gone)
    # Spark may have read a file twice: after maxFileAge it forgets what it has seen.
    return list(dict.fromkeys(file.path for file in read if file.path in there))


def _refuse_gone(of: ReplayedSource, gone: list[SeenFile]) -> None:
    source, storage = of.source, of.storage
    entry = max(file.log_offset for file in gone)
    reads = (
        batch.batch_id
        for batch in of.batches()
        if batch.offsets_to and (batch.offsets_to[of.number] or {}).get("logOffset", -1) >= entry
    )
    last = next(reads, None)
    bound = None if last is None else newest_until(of, last)
    if does_without(of, bound):
        return
    archive = source.options.get("sourceArchiveDir")
    copies = storage.path(str(archive)) if archive else "a copy"
    raise RefusedError(
        "replay.files-gone",
        f"{len(gone)} of the files that source {of.name} of {of.pipeline.name} has read are gone, for example"
        f" {gone[-1].path}: {of.interval} cannot be replayed{from_then_on(of, bound)}",
        where=storage.path(source.path or ""),
        do=f"restore them from {copies}; drains will not read them again",
    )
