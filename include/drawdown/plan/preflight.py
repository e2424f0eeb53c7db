"""Preflight: is there anything for a drain to do? Answered without Spark, and with yes on any doubt.

A run with nothing new then costs no Spark start. It only reads: listings, the checkpoint's files, a
broker's offsets, a Delta table's version, the metastore. It does not say what a drain would refuse:
it lets the drain start and say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from drawdown.checkpoint import CheckpointFiles, SeenFile, plain_path
from drawdown.errors import DrawdownError
from drawdown.metastore import Metastore
from drawdown.metastore.records import BatchStatus, Checkpoint, FileMark
from drawdown.plan.delta_backlog import delta_backlog
from drawdown.plan.file_backlog import file_backlog
from drawdown.plan.findings import Finding
from drawdown.plan.kafka_backlog import KafkaPast, kafka_backlog
from drawdown.plan.kafka_losses import noted_ids
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage

FILE_FORMATS = frozenset({"csv", "json", "xml", "parquet", "orc", "text", "avro"})
_UNPUBLISHED: tuple[BatchStatus, ...] = ("staged", "committed", "passed")


@dataclass(frozen=True)
class Preflight:
    """The answer for one pipeline.

    Attributes:
        work: whether a drain should start.
        reasons: why, one sentence each; empty when there is nothing to do.
        backlog: per streaming source what waits there, see `Finding`.
        settled_ms: until when a run should wait, see `Finding`.
    """

    work: bool
    reasons: list[str] = field(default_factory=list)
    backlog: dict[str, dict[str, Any]] = field(default_factory=dict)
    settled_ms: int = 0


def preflight(project: Project, pipeline: Pipeline, metastore: Metastore) -> Preflight:
    """Whether a pipeline has anything to drain, audit or publish. Raises nothing that a user can cause."""
    reasons: list[str] = []
    backlog: dict[str, dict[str, Any]] = {}
    settled_ms = 0
    try:
        storage = Storage(project.storage_root)
        checkpoint = metastore.active_checkpoint(pipeline.name)
        reasons += _unfinished_business(metastore, pipeline, checkpoint)
        past = Past.read(storage, checkpoint)
        reasons += past.reasons
        reasons += _pending_carriers(storage, pipeline, checkpoint, past)
        reasons += _pending_replays(metastore, past)
    except DrawdownError as error:
        return Preflight(True, [*reasons, f"in doubt: {error.what}"], backlog)
    for name, source in pipeline.sources.items():
        if source.static:
            continue
        try:
            finding = _look(project, storage, metastore, pipeline, name, past)
        except DrawdownError as error:
            finding = Finding((f"in doubt: {error.what}",))
        reasons += [f"{name}: {reason}" for reason in finding.reasons]
        backlog[name] = finding.backlog
        settled_ms = max(settled_ms, finding.settled_ms)
    return Preflight(bool(reasons), reasons, backlog, settled_ms)


@dataclass(frozen=True)
class Past:
    """What the checkpoint says was read: empty before the first committed batch."""

    checkpoint: Checkpoint | None = None
    files: CheckpointFiles | None = None
    source_order: tuple[str, ...] = ()
    offsets: tuple[Any, ...] = ()
    reasons: tuple[str, ...] = ()
    planned_at: datetime | None = None

    @classmethod
    def read(cls, storage: Storage, checkpoint: Checkpoint | None) -> Past:
        if checkpoint is None:
            return cls()
        files = CheckpointFiles(storage, checkpoint.path)
        reasons = ("a batch was planned and not committed",) if files.unfinished else ()
        last = files.last_commit_batch()
        # Spark numbers the sources by their place in the plan; the engine noted which is which.
        order = tuple(checkpoint.fingerprint.get("source_order", ()))
        if last is None:
            return cls(checkpoint, files, order, tuple(None for _ in order), reasons)
        entry = files.offsets(last)
        offsets = tuple(entry.offsets)
        if len(order) != len(offsets):
            found = f"in doubt: the checkpoint has {len(offsets)} source(s), {len(order)} are known by name"
            return cls(reasons=(*reasons, found))
        millis = entry.metadata.get("batchTimestampMs", 0)
        return cls(checkpoint, files, order, offsets, reasons, datetime.fromtimestamp(millis / 1_000, UTC))

    def offset(self, name: str) -> Any:
        """The committed offset of a source; None when it has shown nothing or is not in the checkpoint.

        A transform that uses a source twice reads it twice: the first reading stands for both.
        """
        return self.offsets[self.source_order.index(name)] if name in self.source_order else None

    def kafka_offset(self, name: str) -> Any:
        """The next offsets of a Kafka source; before its first batch those that its first run has fixed."""
        offset = self.offset(name)
        return self.kafka_start(name) if offset is None else offset

    def offsets_of(self, pipeline: Pipeline) -> dict[str, Any]:
        """The committed offsets by streaming source, see `offset`."""
        return {name: self.offset(name) for name in pipeline.streaming_sources}

    def of_kafka(self, metastore: Metastore, name: str) -> KafkaPast:
        """What is known of the reading of a Kafka source."""
        ids: Mapping[str, str] = {}
        if self.checkpoint is not None and self.files is not None:
            ids = noted_ids(metastore, self.checkpoint, self.files).get(name, {})
        return KafkaPast(self.kafka_offset(name), ids, self.planned_at)

    def kafka_start(self, name: str) -> Any:
        """The offsets that the first run of a Kafka source has fixed; None before it."""
        if self.files is None or name not in self.source_order:
            return None
        return self.files.kafka_start(self._folder(name))

    def differs(self, name: str) -> bool:
        """Whether a source that the transform uses several times is read further by one of its uses."""
        uses = zip(self.source_order, self.offsets, strict=True)
        offsets = [offset for use, offset in uses if use.split("@")[0] == name]
        return any(offset != offsets[0] for offset in offsets)

    def read_files(self, name: str) -> list[SeenFile]:
        """The files of a file source that committed batches have read; a planned batch's still wait."""
        last = (self.offset(name) or {}).get("logOffset", -1)
        return [file for file in self.seen(name) if file.log_offset <= last]

    def marks(self, metastore: Metastore, name: str) -> dict[str, FileMark]:
        """What the files of a source looked like when a batch first read them, by path."""
        if self.checkpoint is None:
            return {}
        return metastore.read_files(self.checkpoint.pipeline, self.checkpoint.generation, name)

    def seen(self, name: str) -> list[SeenFile]:
        """The files that a file source has taken into a batch, committed or planned."""
        if self.files is None or name not in self.source_order:
            return []
        return self.files.seen_files(self._folder(name))

    def _folder(self, name: str) -> int:
        # Folders are numbered by relation: a name that comes again is the same one.
        return list(dict.fromkeys(self.source_order)).index(name)


def _unfinished_business(
    metastore: Metastore, pipeline: Pipeline, checkpoint: Checkpoint | None
) -> Iterator[str]:
    if checkpoint is not None:
        left = metastore.batches(pipeline.name, checkpoint.generation, _UNPUBLISHED)
        held = metastore.batches(pipeline.name, checkpoint.generation, ("held",))
        if held and pipeline.sink.publish == "audited" and pipeline.sink.ordered:
            # What passed behind a held batch waits for a person, not for a run.
            left = [b for b in left if b.status != "passed" or b.batch_id < held[0].batch_id]
        if left:
            yield f"{len(left)} batch(es) are staged and not yet judged or published"
    if metastore.holder_of(pipeline.name) is None:
        for run in metastore.open_runs(pipeline.name):
            yield f"run {run.run_id} died without a word"


def _pending_carriers(
    storage: Storage, pipeline: Pipeline, checkpoint: Checkpoint | None, past: Past
) -> Iterator[str]:
    """Carriers that a dead run wrote and no batch has read (engine/carriers.py writes them)."""
    if checkpoint is None:
        return
    folder = f"_drawdown/{pipeline.name}/carriers-{checkpoint.generation}"
    waiting: dict[str, set[str]] = {}
    for info in storage.walk(folder, depth=2):
        if info.name.endswith(".json") and not info.name.startswith("."):
            waiting.setdefault(info.relative.split("/")[-2], set()).add(plain_path(info.path))
    for source, paths in sorted(waiting.items()):
        if paths - {file.path for file in past.seen(f"{source}#carrier")}:
            yield f"a carrier of {source} is not read yet"


def _pending_replays(metastore: Metastore, past: Past) -> Iterator[str]:
    """Replays of set-aside rows whose command died before their batch was committed."""
    if past.checkpoint is None or past.files is None:
        return
    first = (past.files.last_commit_batch() or 0) + 1
    of = past.checkpoint.pipeline, past.checkpoint.generation
    rows = sum(each.rows for each in metastore.replays(*of, first_batch=first))
    if rows:
        yield f"{rows} row(s) of the quarantine wait for the next batch"


def _look(
    project: Project, storage: Storage, metastore: Metastore, pipeline: Pipeline, name: str, past: Past
) -> Finding:
    source = pipeline.sources[name]
    if past.source_order and name not in past.source_order:
        return Finding(("is not in the checkpoint",))
    if past.differs(name):
        return Finding(("its readings in the transform are not equally far",))
    if source.format in FILE_FORMATS:
        return file_backlog(storage, source, past.read_files(name), past.marks(metastore, name))
    if source.format == "kafka":
        return kafka_backlog(project.brokers[source.broker], source, past.of_kafka(metastore, name))
    if source.format in ("delta", "table"):
        return delta_backlog(storage.path(source.path or ""), past.offset(name))
    return Finding((f"only Spark can tell what a {source.format} source has",))
