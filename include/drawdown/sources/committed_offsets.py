"""How far a checkpoint says each source was read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from drawdown.checkpoint import CheckpointFiles, SeenFile
from drawdown.metastore import Metastore
from drawdown.metastore.records import Checkpoint, FileMark
from drawdown.sources.read_log import ReadLog
from drawdown.spec import Pipeline, Source
from drawdown.storage import Storage
from drawdown.values.text import counted
from drawdown.workspace import Workspace


@dataclass(frozen=True)
class CommittedOffsets:
    """How far each source was read, by the checkpoint; empty before the first committed batch."""

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
        order = tuple(checkpoint.fingerprint.get("source_order", ()))
        files = CheckpointFiles(storage, checkpoint.path, order)
        reasons = ("a batch was planned and not committed",) if files.unfinished else ()
        last = files.last_commit_batch()
        if last is None:
            return cls(checkpoint, files, order, tuple(None for _ in order), reasons)
        entry = files.offsets(last)
        offsets = tuple(entry.offsets)
        if len(order) != len(offsets):
            found = (
                f"in doubt: the checkpoint has {counted(len(offsets), 'source')}, known by name: {len(order)}"
            )
            return cls(reasons=(*reasons, found))
        millis = entry.metadata.get("batchTimestampMs", 0)
        return cls(checkpoint, files, order, offsets, reasons, datetime.fromtimestamp(millis / 1_000, UTC))

    def offset(self, name: str) -> Any:
        """Return the committed offset of a source; None when nothing was read or the checkpoint lacks it.

        A transform that uses a source twice reads it twice: this is the offset of the first reading.
        """
        return self.offsets[self.source_order.index(name)] if name in self.source_order else None

    def kafka_offset(self, name: str) -> Any:
        """Return the next offsets of a Kafka source; before its first batch, those its first run fixed."""
        offset = self.offset(name)
        return self.kafka_start(name) if offset is None else offset

    def offsets_of(self, pipeline: Pipeline) -> dict[str, Any]:
        """Return the committed offset of each streaming source, see `offset`."""
        return {name: self.offset(name) for name in pipeline.streaming_sources}

    def kafka_start(self, name: str) -> Any:
        """Return the offsets that the first run of a Kafka source fixed; None before that run."""
        if self.files is None or name not in self.source_order:
            return None
        return self.files.kafka_start(self._folder(name))

    def differs(self, name: str) -> bool:
        """Whether a source that the transform uses several times was read further by one of the uses."""
        uses = zip(self.source_order, self.offsets, strict=True)
        offsets = [offset for use, offset in uses if use.split("@")[0] == name]
        return any(offset != offsets[0] for offset in offsets)

    def read_files(self, name: str) -> list[SeenFile]:
        """Return the files that a file source's committed batches have read, without a planned batch's."""
        last = (self.offset(name) or {}).get("logOffset", -1)
        return [file for file in self.seen(name) if file.log_offset <= last]

    def read_log(self, name: str) -> ReadLog:
        """Return the files of `read_files` from the newest on, to be read as far back as needed."""
        return ReadLog(self._newest_read(name))

    def _newest_read(self, name: str) -> Iterator[list[SeenFile]]:
        if self.files is None or name not in self.source_order:
            return
        last = (self.offset(name) or {}).get("logOffset", -1)
        for block in self.files.newest_seen_files(self._folder(name)):
            yield [file for file in block if file.log_offset <= last]

    def marks(
        self, metastore: Metastore, name: str, paths: Collection[str] | None = None
    ) -> dict[str, FileMark]:
        """Return size and time that files of a source, these or all, had when a batch first read them."""
        if self.checkpoint is None:
            return {}
        return metastore.read_files(self.checkpoint.pipeline, self.checkpoint.generation, name, paths)

    def seen(self, name: str) -> list[SeenFile]:
        """Return the files that are in a batch of a file source, committed or planned."""
        if self.files is None or name not in self.source_order:
            return []
        return self.files.seen_files(self._folder(name))

    def _folder(self, name: str) -> int:
        # Folders are numbered by relation: a repeated name is the same relation.
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
