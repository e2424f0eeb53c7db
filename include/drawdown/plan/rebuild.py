"""What a rebuild is made of: which version of a pipeline, how much of a source at a time, which files.

A rebuild reads from the beginning. Its batches are no larger than the largest that the live query has taken,
and come in the order in which Spark lists files: oldest first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from drawdown.checkpoint import plain_path
from drawdown.metastore import Metastore
from drawdown.metastore.records import Checkpoint
from drawdown.plan.changes import changes
from drawdown.plan.file_listing import list_source_files
from drawdown.plan.fingerprint import spec_fingerprint
from drawdown.plan.kafka_client import no_answer
from drawdown.plan.kafka_offsets import flat, lower_case_options, topic_offsets
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
    if pipeline.is_next:
        # What was in use before a roll back says nothing of now.
        pipeline = load_pipeline(project, pipeline.name)
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
        given = lower_case_options(source)
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
    most = 0
    for batch in metastore.batches(live.pipeline, live.generation):
        first = flat(batch.offsets_from[number]) if batch.offsets_from else {}
        last = flat(batch.offsets_to[number]) if batch.offsets_to else {}
        most = max(most, sum(end - first.get(partition, 0) for partition, end in last.items()))
    return most


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
        given = lower_case_options(source)
        there = {plain_path(info.path) for info in list_source_files(storage, source.path or "", given)}
        there |= {file.path for file in had.read_files(name)}
        if gone := [file.path for file in past.read_files(name) if file.path not in there]:
            found[name] = gone
    return found


def read_apart(project: Project, live: Checkpoint, shadow: Checkpoint, pipeline: Pipeline) -> str | None:
    """What one of both generations has read, or let go of, and the other has not; None when they are equal.

    Sources that are others in `pipeline` than `live` knows are left out: nobody expects the same rows.
    """
    storage = Storage(project.storage_root)
    one, other = Past.read(storage, live), Past.read(storage, shadow)
    now = spec_fingerprint(pipeline)
    for name, source in pipeline.streaming_sources.items():
        if live.fingerprint.get(f"sources.{name}") != now[f"sources.{name}"]:
            continue
        if _read(one, source.format, name) != _read(other, source.format, name):
            return f"source {name}"
    stateful = all(each.fingerprint.get("state.operators") for each in (live, shadow))
    if stateful and _let_go(one) != _let_go(other):
        return "event times that are finished with"
    return None


def _read(past: Past, kind: str, name: str) -> object:
    """How far a source was read, as both generations say it alike."""
    if kind in FILE_FORMATS:
        return {file.path for file in past.read_files(name)}
    if kind == "kafka":
        return flat(past.kafka_offset(name))
    offset = past.offset(name)
    if isinstance(offset, dict) and "reservoirId" in offset:
        return offset["reservoirId"], offset["reservoirVersion"], offset["index"]
    return None


def _let_go(past: Past) -> int:
    last = past.files.last_commit_batch() if past.files is not None else None
    return -1 if last is None or past.files is None else past.files.offsets(last).watermark_ms


def gone_offsets(project: Project, reader: Checkpoint, pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    """Source and partition of which `reader` has read offsets that are not there any more.

    A source that says ``failOnDataLoss: false`` does without them.

    Raises:
        SourceError: the broker does not answer.
    """
    from confluent_kafka import KafkaException

    past, now = Past.read(Storage(project.storage_root), reader), spec_fingerprint(pipeline)
    for name, source in pipeline.streaming_sources.items():
        lossy = str(lower_case_options(source).get("failondataloss", True)).lower() == "false"
        other = reader.fingerprint.get(f"sources.{name}") != now[f"sources.{name}"]
        if source.format != "kafka" or lossy or other:
            continue
        broker = project.brokers[source.broker]
        try:
            earliest = topic_offsets(broker, source).earliest
        except KafkaException as cause:
            raise no_answer(broker, "source.broker", f"source {name} of {pipeline.name}", cause) from None
        first = flat(past.kafka_start(name))
        for partition, end in flat(past.offset(name)).items():
            if first.get(partition, 0) < min(earliest.get(partition, end), end):
                yield name, f"partition {partition[1]} of topic {partition[0]}"
