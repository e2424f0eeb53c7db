"""What a rebuild is made of: which version of a pipeline, how much of a source at a time, which files.

A rebuild reads from the beginning. Its batches are no larger than the largest that the live query has taken,
and come in the order in which Spark lists files: oldest first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from drawdown.checkpoint import plain_path
from drawdown.metastore import Metastore
from drawdown.metastore.records import Checkpoint
from drawdown.plan.changes import changes
from drawdown.plan.file_listing import list_source_files
from drawdown.plan.fingerprint import spec_fingerprint
from drawdown.plan.preflight import FILE_FORMATS, Past
from drawdown.spec import Pipeline, Project, load_next, load_pipeline
from drawdown.storage import Storage

_BOUNDS = {"kafka": ("maxOffsetsPerTrigger",)} | dict.fromkeys(
    FILE_FORMATS, ("maxFilesPerTrigger", "maxBytesPerTrigger")
)
"""By format the options that bound a batch; the first is the one that a rebuild sets."""


def wanted(project: Project, name: str) -> Pipeline:
    """The version that a rebuild makes: that in `next/`, or else the folder's own. Raises SpecError."""
    return load_next(project, name) or load_pipeline(project, name)


def in_use(project: Project, metastore: Metastore, pipeline: Pipeline) -> Pipeline:
    """The version that the live generation is drained with: the folder's, or after a swap that in `next/`.

    Once `next/` has been moved to the folder, or holds a version after that, the folder's fits better.

    Raises:
        SpecError: that in `next/` is wrong. RefusedError: ``rebuild.unfinished``.
    """
    live = metastore.active_checkpoint(pipeline.name)
    if live is None or not live.rebuild.get("from_next"):
        return pipeline
    following = load_next(project, pipeline.name)
    if following is None:
        return pipeline
    of = live.fingerprint
    return min((following, pipeline), key=lambda each: len(changes(of, spec_fingerprint(each))))


def steps(
    storage: Storage, metastore: Metastore, live: Checkpoint, pipeline: Pipeline
) -> dict[str, dict[str, int]]:
    """By source the option that bounds a batch, where the spec has none: the most that a live batch took."""
    past = Past.read(storage, live)
    found: dict[str, dict[str, int]] = {}
    for name, source in pipeline.streaming_sources.items():
        bounds = _BOUNDS.get(source.format, ())
        given = {option.lower() for option in source.options}
        if not bounds or any(bound.lower() in given for bound in bounds) or name not in past.source_order:
            continue
        if source.format == "kafka":
            most = _most_offsets(metastore, live, past.source_order.index(name))
        else:
            most = max(Counter(file.log_offset for file in past.seen(name)).values(), default=0)
        if most:
            found[name] = {bounds[0]: most}
    return found


def _most_offsets(metastore: Metastore, live: Checkpoint, number: int) -> int:
    sizes = [
        _offsets_between(batch.offsets_from[number], batch.offsets_to[number])
        for batch in metastore.batches(live.pipeline, live.generation)
        if batch.offsets_from and batch.offsets_to
    ]
    return max(sizes, default=0)


def _offsets_between(first: Any, last: Any) -> int:
    """Of Kafka offsets as Spark writes them: topic to partition to the next offset."""
    return sum(
        upto - ((first or {}).get(topic) or {}).get(partition, 0)
        for topic, partitions in (last or {}).items()
        for partition, upto in partitions.items()
    )


def gone_files(
    storage: Storage, reader: Checkpoint, other: Checkpoint | None, pipeline: Pipeline
) -> Mapping[str, Sequence[str]]:
    """By source the files that `reader` has read, `other` has not, and that are not there any more.

    Sources that are others in `pipeline` than `reader` knows are left out: nobody expects the same rows.

    Raises:
        FileNotFoundError, RefusedError, SourceError: as list_source_files.
    """
    past, had = Past.read(storage, reader), Past.read(storage, other)
    now = spec_fingerprint(pipeline)
    found: dict[str, Sequence[str]] = {}
    for name, source in pipeline.streaming_sources.items():
        key = f"sources.{name}"
        if source.format not in FILE_FORMATS or reader.fingerprint.get(key) != now[key]:
            continue
        given = {option.lower(): value for option, value in source.options.items()}
        there = {plain_path(info.path) for info in list_source_files(storage, source.path or "", given)}
        there |= {file.path for file in had.read_files(name)}
        if gone := [file.path for file in past.read_files(name) if file.path not in there]:
            found[name] = gone
    return found
