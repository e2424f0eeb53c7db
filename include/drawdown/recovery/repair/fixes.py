"""Finds out how a checkpoint fault can be fixed without loss; None if only a copy of the file would help.

A file can be rewritten if its content is also stored elsewhere: the metastore records the offsets of every
batch, each offset file contains the watermark of the commit before it, a compacted log entry contains the
lines of earlier ones. Batches that were never visible can be removed and are planned again.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from drawdown.checkpoint import (
    MARKS,
    SOURCE_FIELDS,
    CheckpointFault,
    FileLog,
    StateFiles,
    checksum_path,
    log_offset,
    plain_path,
)
from drawdown.errors import RefusedError
from drawdown.metastore.records import Batch
from drawdown.recovery.repair.faults import shown_batches
from drawdown.recovery.sink.log_entries import sink_entry
from drawdown.workspace import Generation

_REPLAYED = (None, "staged", "committed", "passed")


@dataclass(frozen=True)
class _OffsetFile:
    """What a rewritten offset file takes over from another batch's: version line, metadata, source names."""

    version: str
    metadata: Mapping[str, Any]
    sources: Sequence[str]


@dataclass(frozen=True)
class Fix:
    """The fix of a fault.

    Attributes:
        says: what is done, and why nothing is lost.
        remove: paths relative to the storage root; their checksums go too.
        write: path to content; its old checksum goes.
        checksums: paths whose checksum alone is removed.
    """

    fault: CheckpointFault
    says: str
    remove: tuple[str, ...] = ()
    write: Mapping[str, bytes] = field(default_factory=dict)
    checksums: tuple[str, ...] = ()


class Fixes:
    """Finds the fixes for one generation's faults; changes nothing."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        self._files = generation.files
        self._path = generation.path
        self._planned = self._files.last_offset_batch()
        self._committed = self._files.last_commit_batch()

    def of(self, fault: CheckpointFault) -> Fix | None:
        """Return the fix of one fault from `Generation.faults`.

        Raises:
            SourceError: the sink cannot be reached.
        """
        if fault.path.rpartition("/")[2] in MARKS:
            return None
        if fault.kind == "checksum" and fault.part != "state":
            if self._trusted(fault):
                says = "the file is consistent with all records; its stale checksum is removed"
                return Fix(fault, says, checksums=(fault.path,))
            fault = CheckpointFault(fault.part, "torn", fault.path, fault.what, fault.needed, fault.number)
        return {
            "metadata": self._metadata,
            "offsets": self._offsets,
            "commits": self._commits,
            "sources": self._sources,
            "state": self._state,
            "sink": self._sink,
        }[fault.part](fault)

    def _trusted(self, fault: CheckpointFault) -> bool:
        """Whether a readable file agrees with what is stored elsewhere, if anything is."""
        if fault.part == "offsets" and fault.number is not None:
            noted = self._noted(fault.number)
            entry = self._files.offsets(fault.number)
            agrees = noted is None or noted.offsets_to == entry.offsets
            return agrees and self._replayed_at(fault.number) in (None, entry.planned_ms)
        if fault.part == "commits" and fault.number is not None:
            watermark = self._watermark_after(fault.number)
            said = self._files.commit(fault.number).get("nextBatchWatermarkMs", 0)
            return watermark is None or watermark == said
        if fault.part == "metadata":
            checkpoint = self._generation.checkpoint
            return checkpoint is None or checkpoint.query_id in (None, self._files.query_id())
        return True

    def _metadata(self, fault: CheckpointFault) -> Fix | None:
        if self._planned is None or (fault.kind == "foreign" and not self._own_offsets(self._planned)):
            return None
        known = self._generation.checkpoint.query_id if self._generation.checkpoint else None
        says = (
            "rewritten with the query id from the metastore"
            if known
            else "written with a new query id: nothing written so far depends on the old one"
        )
        content = json.dumps({"id": known or str(uuid.uuid4())}, separators=(",", ":")).encode()
        return Fix(fault, says, write={fault.path: content})

    def _own_offsets(self, planned: int) -> bool:
        """Whether the last batch is the one that the metastore has noted: then only the id is foreign."""
        noted = next((batch for n in (planned, planned - 1) if (batch := self._noted(n))), None)
        if noted is None or self._generation.batches(first_batch=planned + 1):
            return False
        if noted.offsets_to != self._files.offsets(noted.batch_id).offsets:
            return False
        names = {name for read in noted.by_source.values() for name in read.get("names", ())}
        return not names or any(self._generation.storage.relative(path) in names for path in self._newest())

    def _newest(self) -> Iterator[str]:
        """Yield the files that the sources' logs have noted last."""
        for source in self._files.sources():
            log = FileLog(self._generation.storage, f"{self._path}/sources/{source}", SOURCE_FIELDS)
            yield from (plain_path(record["path"]) for record in log.newest())

    # Offsets

    def _offsets(self, fault: CheckpointFault) -> Fix | None:
        batch = fault.entry
        content = self._offsets_again(batch)
        if content is not None:
            says = f"batch {batch}: rewritten with the offsets from the metastore"
            return Fix(fault, says, write={fault.path: content})
        if self._unseen(batch):
            says = f"batch {batch}: removed; the batch was never visible, and the next run plans it again"
            return Fix(fault, says, remove=(fault.path,))
        if not fault.needed:
            return Fix(fault, f"batch {batch}: removed; no run needs it any more", remove=(fault.path,))
        return None

    def _offsets_again(self, batch: int) -> bytes | None:
        noted, neighbour = self._noted(batch), self._neighbour(batch)
        watermark = 0 if batch == 0 else self._left_by(batch - 1)
        if noted is None or neighbour is None or watermark is None:
            return None
        if len(neighbour.sources) != len(noted.offsets_to):
            return None
        times = {"batchWatermarkMs": watermark, "batchTimestampMs": self._planned_at(batch)}
        metadata = {**neighbour.metadata, **times}
        offsets = [
            "-" if each is None else json.dumps(each, separators=(",", ":")) for each in noted.offsets_to
        ]
        if neighbour.version == "v2":
            offsets = [f"{name}:{text}" for name, text in zip(neighbour.sources, offsets, strict=True)]
        return "\n".join([neighbour.version, json.dumps(metadata, separators=(",", ":")), *offsets]).encode()

    def _neighbour(self, batch: int) -> _OffsetFile | None:
        """Return the nearest readable offset file of another batch."""
        others = sorted(self._files.offset_batches(), key=lambda n: abs(n - batch))
        for other in others:
            if other == batch:
                continue
            try:
                entry = self._files.offsets(other)
            except RefusedError:
                continue
            content = self._generation.storage.read_bytes(f"{self._path}/offsets/{other}")
            version = content.decode().partition("\n")[0].strip()
            return _OffsetFile(version, entry.metadata, list(entry.by_source))
        return None

    def _planned_at(self, batch: int) -> int:
        """The batch's time: as noted where rows of the quarantine go in by it, else when it was written."""
        if (replayed := self._replayed_at(batch)) is not None:
            return replayed
        path = f"{self._path}/offsets/{batch}"
        return next((info.mtime_ms for info in self._generation.storage.walk(path)), 0)

    def _replayed_at(self, batch: int) -> int | None:
        replays = self._generation.replays(first_batch=batch)
        return next((each.planned_ms for each in replays if each.batch_id == batch), None)

    def _unseen(self, batch: int) -> bool:
        """Whether a batch was only planned: not committed, and not in the sink."""
        last = batch == self._planned and (self._committed is None or batch > self._committed)
        noted = self._noted(batch)
        return last and (noted is None or noted.status == "staged") and self._sink_before(batch)

    def _sink_before(self, batch: int) -> bool:
        shown = shown_batches(self._generation)
        noted = self._noted(batch)
        # A sink that cannot be asked counts as having every recorded batch.
        return max(shown.values()) < batch or (
            noted is None and shown["quarantine"] < batch > shown["output"]
        )

    # Commits

    def _commits(self, fault: CheckpointFault) -> Fix | None:
        batch = fault.entry
        watermark = self._watermark_after(batch)
        if watermark is not None and self._plain_commits(batch):
            content = f'v1\n{{"nextBatchWatermarkMs":{watermark}}}'.encode()
            says = f"batch {batch}: rewritten with its watermark"
            return Fix(fault, says, write={fault.path: content})
        noted = self._noted(batch)
        if (
            batch == self._planned
            and fault.kind != "missing"
            and (noted.status if noted else None) in _REPLAYED
        ):
            says = f"batch {batch}: removed; the next run replays the batch with the same offsets"
            return Fix(fault, says, remove=(fault.path,))
        if not fault.needed:
            return Fix(fault, f"batch {batch}: removed; no run needs it any more", remove=(fault.path,))
        return None

    def _watermark_after(self, batch: int) -> int | None:
        """Return the watermark after a batch, from a source other than its commit."""
        try:
            return self._files.offsets(batch + 1).watermark_ms
        except RefusedError:
            pass
        noted = self._noted(batch)
        if noted is None or noted.status == "staged" or batch != self._planned:
            return None
        run = self._generation.metastore.run(noted.run_id)
        if run is None or run.state not in ("succeeded", "stopped", "failed"):
            return None
        return 0 if run.watermark is None else round(run.watermark.timestamp() * 1_000)

    def _left_by(self, batch: int) -> int | None:
        try:
            return int(self._files.commit(batch).get("nextBatchWatermarkMs", 0))
        except RefusedError:
            return None

    def _plain_commits(self, batch: int) -> bool:
        """Whether commits contain only a watermark: commits with unique state file ids cannot be
        rewritten."""
        for other in reversed(self._files.commit_batches()):
            try:
                return other == batch or self._files.commit(other).keys() <= {"nextBatchWatermarkMs"}
            except RefusedError:
                continue
        return True

    # Logs of files, state

    def _sources(self, fault: CheckpointFault) -> Fix | None:
        entry, source = fault.entry, fault.path.split("/")[-2]
        if not fault.needed:
            says = f"entry {entry}: removed; a compacted entry contains its lines"
            return Fix(fault, says, remove=(fault.path,))
        if fault.path.endswith(".compact"):
            return None
        if entry > self._read_by(source, self._planned):
            says = f"entry {entry}: removed; no batch has read its files, so the next run finds them again"
            return Fix(fault, says, remove=(fault.path,))
        if (
            entry > self._read_by(source, self._committed)
            and self._planned is not None
            and self._unseen(self._planned)
        ):
            says = (
                f"entry {entry}: removed with the offsets of batch {self._planned}, which was never visible"
            )
            return Fix(fault, says, remove=(f"{self._path}/offsets/{self._planned}", fault.path))
        return None

    def _read_by(self, source: str, batch: int | None) -> int:
        if batch is None:
            return -1
        offset = log_offset(self._files.offsets(batch).by_source.get(source))
        return -1 if offset is None else offset

    def _state(self, fault: CheckpointFault) -> Fix | None:
        if fault.kind == "checksum" and fault.path.endswith(".zip"):
            return Fix(fault, "the archive is intact; its stale checksum is removed", checksums=(fault.path,))
        if "/_metadata/" in fault.path and fault.path.endswith(".crc"):
            return Fix(fault, "removed; Spark writes the file again", remove=(fault.path,))
        if fault.kind == "missing":
            return None
        if not fault.needed:
            return Fix(fault, "removed; the next run does not need it", remove=(fault.path,))
        version = 0 if self._committed is None else self._committed + 1
        for store in StateFiles.read(self._generation.storage, self._path).stores.values():
            is_here = any(info.relative == fault.path for _, info in store.files())
            if is_here and not store.needed(version, frozenset({fault.path}))[1]:
                says = "removed; an older snapshot plus the later changes gives the same state"
                return Fix(fault, says, remove=(fault.path,))
        return None

    def _sink(self, fault: CheckpointFault) -> Fix | None:
        content = sink_entry(self._generation, fault.path.rpartition("/")[2])
        if content is not None:
            says = f"entry {fault.entry}: rewritten with the files from the metastore"
            return Fix(fault, says, write={fault.path: content})
        if self._committed is None or fault.entry > self._committed:
            says = f"entry {fault.entry}: removed; the batch is not committed and will be rewritten"
            return Fix(fault, says, remove=(fault.path,))
        return None

    def _noted(self, batch: int) -> Batch | None:
        return self._generation.metastore.batch(
            self._generation.pipeline.name, self._generation.number, batch
        )


def touched(fix: Fix) -> list[str]:
    """Return every file that a fix changes, with its checksum."""
    paths = [*fix.remove, *fix.write, *fix.checksums]
    return [each for path in paths for each in (path, checksum_path(path))]
