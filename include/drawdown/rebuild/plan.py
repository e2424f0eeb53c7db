"""Plans a rebuild: the pipeline version, the batch bounds of each source, and lost files.

A rebuild reads from the beginning. Its batches are at most as large as the largest of the live query, and in
Spark's listing order: oldest files first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from drawdown.brokers.client import no_answer
from drawdown.brokers.offsets import Partition, flat, is_lossy, lower_case_options, topic_ids, topic_offsets
from drawdown.checkpoint import plain_path
from drawdown.metastore import Metastore
from drawdown.metastore.records import Checkpoint
from drawdown.plan.fingerprint import spec_fingerprint
from drawdown.sources.committed_offsets import CommittedOffsets
from drawdown.sources.delta.identity import made_again as tables_made_again
from drawdown.sources.files.all_files import list_source_files
from drawdown.sources.files.kind import FILE_FORMATS
from drawdown.sources.kafka.losses import TOPIC_IDS, made_again
from drawdown.spec import Pipeline, Project, Source
from drawdown.storage import Storage
from drawdown.workspace import Workspace

_BOUNDS = {"kafka": ("maxOffsetsPerTrigger",)} | dict.fromkeys(
    FILE_FORMATS, ("maxFilesPerTrigger", "maxBytesPerTrigger")
)
"""Per format, the options that bound a batch; a rebuild sets the first."""


def steps(workspace: Workspace, live: Checkpoint, pipeline: Pipeline) -> dict[str, dict[str, int]]:
    """Return per source the option that bounds a batch, if the spec has none: the size of the largest live
    batch."""
    past = CommittedOffsets.read(workspace.storage, live)
    found: dict[str, dict[str, int]] = {}
    for name, source in pipeline.streaming_sources.items():
        bound = _missing_bound(source)
        if bound is None or name not in past.source_order:
            continue
        if source.format == "kafka":
            most = _most_offsets(workspace.metastore, live, past.source_order.index(name))
        else:
            most = max(Counter(file.log_offset for file in past.seen(name)).values(), default=0)
        if most:
            found[name] = {bound: most}
    return found


def without_steps(fingerprint: Mapping[str, Any], pipeline: Pipeline) -> dict[str, Any]:
    """Return the fingerprint of a shadow without what `steps` added: once it is live, drains have other
    bounds."""
    own = dict(fingerprint)
    for name, source in pipeline.streaming_sources.items():
        key, bound = f"sources.{name}.options", _missing_bound(source)
        if bound is not None and key in own:
            own[key] = {option: value for option, value in own[key].items() if option != bound}
    return own


def _missing_bound(source: Source) -> str | None:
    """Return the option with which a rebuild bounds its batches; None if the spec does, or nothing can."""
    bounds, given = _BOUNDS.get(source.format, ()), lower_case_options(source)
    return None if any(bound.lower() in given for bound in bounds) else next(iter(bounds), None)


def _most_offsets(metastore: Metastore, live: Checkpoint, number: int) -> int:
    most = 0
    for batch in metastore.batches(live.pipeline, live.generation):
        first = flat(batch.offsets_from[number]) if batch.offsets_from else {}
        last = flat(batch.offsets_to[number]) if batch.offsets_to else {}
        most = max(most, sum(end - first.get(partition, 0) for partition, end in last.items()))
    return most


def gone_files(
    project: Project, reader: Checkpoint, other: Checkpoint | None, pipeline: Pipeline
) -> Mapping[str, Sequence[str]]:
    """Return per source the files that `reader` has read, `other` has not, and that no longer exist.

    Sources that differ in `pipeline` from what `reader` knows are left out: their rows differ anyway.

    Raises:
        FileNotFoundError, RefusedError, SourceError: as list_source_files.
    """
    storage = Storage.of(project)
    past, had = CommittedOffsets.read(storage, reader), CommittedOffsets.read(storage, other)
    found: dict[str, Sequence[str]] = {}
    for name, source in _same_sources(reader, pipeline):
        if source.format not in FILE_FORMATS:
            continue
        given = lower_case_options(source)
        listed = list_source_files(Storage.of_source(project, source), source.path or "", given)
        there = {plain_path(info.path) for info in listed}
        there |= {file.path for file in had.read_files(name)}
        if gone := [file.path for file in past.read_files(name) if file.path not in there]:
            found[name] = gone
    return found


def read_apart(project: Project, live: Checkpoint, shadow: Checkpoint, pipeline: Pipeline) -> str | None:
    """Describe what only one of the two generations has read or finished; None if they are equal.

    Sources that differ in `pipeline` from what `live` knows are left out: their rows differ anyway.
    """
    storage = Storage.of(project)
    one, other = CommittedOffsets.read(storage, live), CommittedOffsets.read(storage, shadow)
    now = spec_fingerprint(pipeline)
    for name, source in pipeline.streaming_sources.items():
        if live.fingerprint.get(f"sources.{name}") != now[f"sources.{name}"]:
            continue
        if _how_far(one, source.format, name) != _how_far(other, source.format, name):
            return f"source {name}"
    stateful = all(each.fingerprint.get("state.operators") for each in (live, shadow))
    if stateful and _let_go(one) != _let_go(other):
        return "finished event times"
    return None


def _how_far(past: CommittedOffsets, kind: str, name: str) -> object:
    """Return a source's progress in a form that is comparable between generations."""
    if kind in FILE_FORMATS:
        return {file.path for file in past.read_files(name)}
    if kind == "kafka":
        return flat(past.kafka_offset(name))
    offset = past.offset(name)
    if isinstance(offset, dict) and "reservoirId" in offset:
        return offset["reservoirId"], offset["reservoirVersion"], offset["index"]
    return None


def _let_go(past: CommittedOffsets) -> int:
    last = past.files.last_commit_batch() if past.files is not None else None
    return -1 if last is None or past.files is None else past.files.offsets(last).watermark_ms


def gone_offsets(workspace: Workspace, reader: Checkpoint, pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    """Yield source and topic whose records `reader` has read and the broker no longer has, also after the
    topic was recreated.

    Sources with ``failOnDataLoss: false`` accept the loss.

    Raises:
        SourceError: the broker does not answer.
    """
    from confluent_kafka import KafkaException

    past = CommittedOffsets.read(workspace.storage, reader)
    for name, source in _same_sources(reader, pipeline):
        if source.format != "kafka" or is_lossy(source) or name not in past.source_order:
            continue
        read = _read(workspace.metastore, reader, name, past)
        broker = workspace.project.brokers[source.broker]
        try:
            found = topic_offsets(broker, source)
            ids = topic_ids(broker, {topic for topic, _ in read.ends})
        except KafkaException as cause:
            raise no_answer(broker, "source.broker", f"source {name} of {pipeline.name}", cause) from None
        again = {topic for noted in read.ids for topic in made_again(noted, ids)}
        for topic in sorted(again):
            yield name, f"topic {topic}, which was recreated,"
        first = flat(past.kafka_start(name))
        for (topic, number), end in read.ends.items():
            begins, ends = found.earliest.get((topic, number), end), found.latest.get((topic, number), 0)
            begin = first.get((topic, number), 0)
            if topic not in again and begin < end and (begin < begins or ends < end):
                yield name, f"partition {number} of topic {topic}"


@dataclass
class _Read:
    """What batches have read of a Kafka source: by partition the offset behind the last, and noted ids."""

    ends: dict[Partition, int]
    ids: list[Mapping[str, str]] = field(default_factory=list)


def _read(metastore: Metastore, reader: Checkpoint, name: str, past: CommittedOffsets) -> _Read:
    """Of all batches that are noted, not of the last one only: it does not name topics that are gone."""
    read = _Read(flat(past.offset(name)))
    for batch in metastore.batches(reader.pipeline, reader.generation):
        read.ids.append(batch.by_source.get(name, {}).get(TOPIC_IDS, {}))
        offsets = batch.offsets_to[past.source_order.index(name)] if batch.offsets_to else None
        for partition, end in flat(offsets).items():
            read.ends[partition] = max(end, read.ends.get(partition, 0))
    return read


def other_tables(storage: Storage, reader: Checkpoint, pipeline: Pipeline) -> Iterator[str]:
    """Yield the Delta sources whose table was recreated after `reader` read it.

    Sources with ``failOnDataLoss: false`` accept the loss of the old table's rows.
    """
    offsets = CommittedOffsets.read(storage, reader).offsets_of(pipeline)
    same = dict(_same_sources(reader, pipeline))
    for name in tables_made_again(storage, pipeline, offsets):
        if name in same and not is_lossy(same[name]):
            yield name


def _same_sources(reader: Checkpoint, pipeline: Pipeline) -> Iterator[tuple[str, Source]]:
    """Yield the streaming sources that are the same as for `reader`; others have different rows anyway."""
    now = spec_fingerprint(pipeline)
    for name, source in pipeline.streaming_sources.items():
        if reader.fingerprint.get(f"sources.{name}") == now[f"sources.{name}"]:
            yield name, source
