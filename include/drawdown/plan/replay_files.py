"""The files that a replay reads: all that the live query has read by then, if they are still there.

What a file holds of an interval nobody has noted. But when a batch had moved the watermark, the rows that
it and those before it were fed are not newer than watermark and delay: so of files that are gone it can be
said from when on a replay does without them.
"""

from __future__ import annotations

from datetime import datetime

from drawdown.checkpoint import SeenFile, plain_path
from drawdown.errors import RefusedError
from drawdown.metastore import Metastore
from drawdown.plan.file_listing import list_source_files
from drawdown.plan.preflight import FILE_FORMATS
from drawdown.plan.replay import Basis, replay_of
from drawdown.spec import Pipeline
from drawdown.spec.interval import Interval, shown
from drawdown.storage import Storage

_BATCHES_UNTIL_NOTED = 2


def files_to_read(
    storage: Storage, metastore: Metastore, pipeline: Pipeline, basis: Basis, name: str, interval: Interval
) -> list[str]:
    """Absolute paths of the files of a source that a replay of this interval reads.

    Raises:
        RefusedError: ``replay.files-gone``; ``source`` errors of the listing.
    """
    source = pipeline.sources[name]
    given = {option.lower(): value for option, value in source.options.items()}
    there = {plain_path(info.path) for info in list_source_files(storage, source.path or "", given)}
    read = basis.past.read_files(name)
    gone = [file for file in read if file.path not in there]
    if gone:
        _refuse_gone(storage, metastore, pipeline, basis, name, interval, gone)
    return [file.path for file in read if file.path in there]


def refuse_gone_files(
    storage: Storage, metastore: Metastore, pipeline: Pipeline, basis: Basis, interval: Interval
) -> None:
    """Look at every file source, as `files_to_read`."""
    for name, source in pipeline.streaming_sources.items():
        if source.format in FILE_FORMATS:
            files_to_read(storage, metastore, pipeline, basis, name, interval)


def _refuse_gone(
    storage: Storage,
    metastore: Metastore,
    pipeline: Pipeline,
    basis: Basis,
    name: str,
    interval: Interval,
    gone: list[SeenFile],
) -> None:
    source, declared = pipeline.sources[name], replay_of(pipeline)
    bound = _not_newer_than(metastore, pipeline, basis, name, max(file.log_offset for file in gone))
    if bound is not None and interval.start - declared.lookback.delta > bound:
        return
    archive = source.options.get("sourceArchiveDir")
    from_then = f"; what starts after {shown(bound + declared.lookback.delta)} can be" if bound else ""
    raise RefusedError(
        "replay.files-gone",
        f"{len(gone)} of the files that source {name} of {pipeline.name} has given are gone, such as"
        f" {gone[-1].path}: {interval} cannot be replayed{from_then}",
        where=storage.path(source.path or ""),
        do=f"bring them back from {storage.path(str(archive)) if archive else 'a copy'}: no drain reads them"
        " again",
    )


def _not_newer_than(
    metastore: Metastore, pipeline: Pipeline, basis: Basis, name: str, entry: int
) -> datetime | None:
    """A bound of the event times in a source's files up to an entry of its log; None when nobody knows one.

    With several watermarks the query's is that of the slowest source, and bounds no other.
    """
    mark = pipeline.sources[name].watermark
    if mark is None or (len(pipeline.watermarked_sources) > 1 and pipeline.watermark_policy == "min"):
        return None
    batches = metastore.batches(pipeline.name, basis.checkpoint.generation)
    number = basis.past.source_order.index(name)
    reads = (
        batch.batch_id
        for batch in batches
        if batch.offsets_to and (batch.offsets_to[number] or {}).get("logOffset", -1) >= entry
    )
    first = next(reads, None)
    if first is None:
        return None
    later = [b.watermark for b in batches if b.batch_id >= first + _BATCHES_UNTIL_NOTED and b.watermark]
    return (later[0] if later else basis.closed) + mark.delay.delta
