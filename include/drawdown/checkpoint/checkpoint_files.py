"""One checkpoint folder: which batches were planned, which were committed, what their sources read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from drawdown.checkpoint.commit_log import read_commit
from drawdown.checkpoint.file_log import SOURCE_FIELDS, FileLog, SeenFile, seen_file
from drawdown.checkpoint.log_text import batch_ids, parse_object, torn
from drawdown.checkpoint.offset_log import OffsetLogEntry, read_offsets
from drawdown.errors import RefusedError
from drawdown.storage import Storage


class CheckpointFiles:
    """A checkpoint as it is on storage now; nothing is kept between calls, nothing is written.

    Every method raises RefusedError when a file is torn (``checkpoint.torn``), not Spark's
    (``checkpoint.foreign``) or of a newer Spark (``checkpoint.future``); the error names the file.

    Args:
        storage: the storage that holds the checkpoint.
        path: relative to the storage root, or as `Storage.path` returned it.
        source_order: the name of the source behind each offset, as the fingerprint keeps it; empty when
            nothing has recorded it.
    """

    def __init__(self, storage: Storage, path: str, source_order: Sequence[str] = ()) -> None:
        self._storage = storage
        self.path = storage.relative(path)
        self._source_order = source_order

    @property
    def exists(self) -> bool:
        """Whether Spark has ever started a query here: it writes ``metadata`` first."""
        return self._storage.exists(f"{self.path}/metadata")

    def query_id(self) -> str | None:
        """Return the id of the query that owns the checkpoint; None when Spark never started one here."""
        path = f"{self.path}/metadata"
        try:
            content = self._storage.read_bytes(path)
        except FileNotFoundError:
            return None
        query_id = parse_object(self._storage, path, content.decode("utf-8", "replace")).get("id")
        if not isinstance(query_id, str):
            raise torn(self._storage, path, "it holds no query id")
        return query_id

    def last_offset_batch(self) -> int | None:
        """Return the newest batch whose offsets are written: the one that runs, or ran last."""
        return max(batch_ids(self._storage, f"{self.path}/offsets"), default=None)

    def offset_batches(self) -> list[int]:
        """Return the planned batches that are kept, ascending; asynchronous progress tracking leaves gaps."""
        return batch_ids(self._storage, f"{self.path}/offsets")

    def last_commit_batch(self) -> int | None:
        """Return the newest batch that Spark has committed."""
        return max(self.commit_batches(), default=None)

    def commit_batches(self) -> list[int]:
        """Return the committed batches that are kept, ascending."""
        return batch_ids(self._storage, f"{self.path}/commits")

    @property
    def unfinished(self) -> bool:
        """Whether a batch was planned and not committed: the next run repeats it first."""
        planned, committed = self.last_offset_batch(), self.last_commit_batch()
        return planned is not None and (committed is None or planned > committed)

    @property
    def unread(self) -> bool:
        """Whether a planned, uncommitted batch reads something: its files must stay.

        A run that ends while timers are pending leaves a planned batch that reads nothing.
        """
        planned, committed = self.last_offset_batch(), self.last_commit_batch()
        if not self.unfinished or planned is None:
            return False
        return committed is None or self.offsets(planned).offsets != self.offsets(committed).offsets

    def offsets(self, batch_id: int) -> OffsetLogEntry:
        """Return the offsets up to which a batch reads.

        Raises:
            RefusedError: also ``checkpoint.missing-batch``: only the newest are kept (minBatchesToRetain).
        """
        try:
            return read_offsets(self._storage, f"{self.path}/offsets/{batch_id}")
        except FileNotFoundError as error:
            raise self._missing("offsets", batch_id) from error

    def offsets_by_folder(self, batch_id: int) -> dict[str, Any]:
        """Return the offset up to which a batch reads, by the name of each folder in ``sources/``.

        A source that the query uses twice has two offsets, which are equal, and one folder. Without a
        recorded order of the sources only folders that exist are certain to be one.

        Raises:
            RefusedError: as `offsets`.
        """
        by_source = self.offsets(batch_id).by_source
        if not all(name.isdecimal() for name in by_source):
            return by_source
        if len(self._source_order) != len(by_source):
            there = self.sources()
            return {name: offset for name, offset in by_source.items() if name in there}
        numbers = {name: str(number) for number, name in enumerate(dict.fromkeys(self._source_order))}
        return {numbers[n]: each for n, each in zip(self._source_order, by_source.values(), strict=True)}

    def commit(self, batch_id: int) -> dict[str, Any]:
        """Return what Spark recorded at the commit of a batch, see commit_log.py.

        Raises:
            RefusedError: also ``checkpoint.missing-batch``.
        """
        try:
            return read_commit(self._storage, f"{self.path}/commits/{batch_id}")
        except FileNotFoundError as error:
            raise self._missing("commits", batch_id) from error

    def late_watermark(self, batch_id: int) -> int:
        """Return the watermark by which rows of a batch are late, milliseconds since 1970 UTC.

        It is the watermark of the batch before; 0 for batch 0. Source (Spark 4.2):
        IncrementalExecution, ``simulateWatermarkPropagation`` takes ``batchWatermarkMs`` of
        ``prevOffsetSeqMetadata`` as ``eventTimeWatermarkForLateEvents`` (0 when there is none);
        MicroBatchExecution.runBatch passes it
        ``offsetLog.offsetSeqMetadataForBatchId(batchId - 1)``. After a stateful operator the
        WatermarkPropagator may hold it back further.
        """
        return self.offsets(batch_id - 1).watermark_ms if batch_id > 0 else 0

    def sources(self) -> list[str]:
        """Return the names of the folders in ``sources/``: one per file source ("0", "1", or its name)."""
        folder = f"{self.path}/sources"
        below = {info.relative[len(folder) + 1 :] for info in self._storage.walk(folder, depth=2)}
        return sorted({name.split("/")[0] for name in below if "/" in name})

    def source_files(self, source: int | str, first: int, last: int) -> list[SeenFile]:
        """Return the files of the log entries `first` to `last`, both included.

        A batch that goes from ``{"logOffset": a}`` to ``{"logOffset": b}`` reads a + 1 to b.

        Raises:
            RefusedError: also ``checkpoint.missing-entry``.
        """
        return [seen_file(record) for record in self._source_log(source).between(first, last)]

    def seen_files(self, source: int | str) -> list[SeenFile]:
        """Return every file that was ever in a batch of a file source (the list only grows)."""
        return [seen_file(record) for record in self._source_log(source).everything()]

    def newest_seen_files(self, source: int | str) -> Iterator[list[SeenFile]]:
        """Yield what `seen_files` returns in blocks, the newest first, each read when it is asked for."""
        for records in self._source_log(source).newest_first():
            yield [seen_file(record) for record in records]

    def kafka_start(self, source: int | str) -> dict[str, dict[str, int]] | None:
        """Return where a Kafka source began, {topic: {partition: offset}}; None until a query has fixed it.

        Source: org.apache.spark.sql.kafka010.KafkaSourceInitialOffsetWriter (Spark 4.2): a zero byte, for
        very old readers, then a version line and the offsets.

        Raises:
            RefusedError: see the class.
        """
        path = f"{self.path}/sources/{source}/0"
        try:
            content = self._storage.read_bytes(path)
        except FileNotFoundError:
            return None
        text = content.decode("utf-8", "replace").lstrip("\0").partition("\n")[2]
        return parse_object(self._storage, path, text)

    def _source_log(self, source: int | str) -> FileLog:
        return FileLog(self._storage, f"{self.path}/sources/{source}", SOURCE_FIELDS)

    def _missing(self, log: str, batch_id: int) -> RefusedError:
        return RefusedError(
            "checkpoint.missing-batch",
            f"the checkpoint has no file for batch {batch_id} in its log of {log}",
            where=self._storage.path(f"{self.path}/{log}"),
            do="check the batch id: the newest spark.sql.streaming.minBatchesToRetain batches are kept; "
            "if a newer one is gone, restore the folder from a copy",
        )
