"""What a checkpoint says was read of each source."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from drawdown.checkpoint import CheckpointFiles, SeenFile
from drawdown.metastore import Metastore
from drawdown.metastore.records import Checkpoint, FileMark
from drawdown.spec import Pipeline, Source
from drawdown.storage import Storage
from drawdown.workspace import Workspace


@dataclass(frozen=True)
class CommittedOffsets:
    """What the checkpoint says was read: empty before the first committed batch."""

    checkpoint: Checkpoint | None = None
    files: CheckpointFiles | None = None
    source_order: tuple[str, ...] = ()
    offsets: tuple[Any, ...] = ()
    reasons: tuple[str, ...] = ()
    planned_at: datetime | None = None

    @classmethod
    def read(cls, storage: Storage, checkpoint: Checkpoint | None) -> CommittedOffsets:
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


@dataclass(frozen=True)
class SourceProgress:
    """One streaming source of a pipeline, by its name, and how far the checkpoint says it was read."""

    workspace: Workspace
    pipeline: Pipeline
    name: str
    past: CommittedOffsets

    @property
    def source(self) -> Source:
        return self.pipeline.sources[self.name]
