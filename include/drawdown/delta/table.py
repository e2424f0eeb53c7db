"""A Delta table for publishing: created empty, changed by one commit per publish.

Every commit has a transaction id that makes a second try a no-op. The files of an append and of an overwrite
are already staged in the table's folder, and the commit only names them; a merge writes its own files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

from drawdown.changes.protocol import ChangedMeanwhileError, Commit, fence_id, info_of
from drawdown.delta.checkpoints import shorten_log
from drawdown.errors import SourceError
from drawdown.metastore.records import Change, Lease, StagedFile
from drawdown.spec.connections.object_storage import is_object_storage
from drawdown.storage import Storage, object_options
from drawdown.storage.object_errors import of_object_storage
from drawdown.values.interval import Interval

if TYPE_CHECKING:
    import pyarrow as pa

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
UNFINDABLE = frozenset("<>`|}~")
"""What Spark leaves unescaped in a partition's folder, and delta-rs 1 looks for escaped."""


class DeltaTableFiles:
    """One Delta table by its absolute path or URL.

    Raises (from every method that opens the table):
        SourceError: ``sink.unreadable`` when it is not a Delta table or cannot be reached.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri

    def exists(self) -> bool:
        """Whether there is a Delta table at the path."""
        if is_object_storage(self.uri):
            # deltalake's own question keeps Python's lock until the bucket answers: while that is silent, no
            # other thread of this process runs, and the lease is not renewed.
            log = Storage(self.uri).walk("_delta_log", depth=1)
            return any(file.name.endswith((".json", ".parquet")) for file in log)
        from deltalake import DeltaTable

        with self.reaching("sink.unreadable", "cannot be read", "check whether it was moved or deleted"):
            return bool(DeltaTable.is_deltatable(self.uri, storage_options=object_options(self.uri)))

    def create(
        self,
        schema_json: str,
        partition_by: Sequence[str],
        description: str,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create an empty table. `schema_json` is Spark's own JSON form of a schema, which Delta shares."""
        from deltalake import DeltaTable, Schema

        with self._writing():
            DeltaTable.create(
                self.uri,
                schema=Schema.from_json(schema_json),
                partition_by=list(partition_by),
                description=description,
                configuration=dict(properties or {}),
                storage_options=object_options(self.uri),
                raise_if_key_not_exists=False,  # properties of our own
            )

    def add_columns(self, fields_json: Sequence[str]) -> None:
        """Add nullable columns, each in Spark's JSON form of a field; existing rows have NULL there."""
        from deltalake import Field

        with self._committing():
            self._table.alter.add_columns([Field.from_json(text) for text in fields_json])
        del self.__dict__["_table"]

    @cached_property
    def _table(self) -> Any:
        from deltalake import DeltaTable

        do = "check whether it was moved or deleted; the checkpoint still expects it"
        with self.reaching("sink.unreadable", "cannot be read", do):
            return DeltaTable(self.uri, storage_options=object_options(self.uri))

    @property
    def table_id(self) -> str:
        """Return Delta's own id of the table; a recreated table has another."""
        return str(self._table.metadata().id)

    @property
    def version(self) -> int:
        """Return the version that this object reads: the newest at its first use."""
        return int(self._table.version())

    @property
    def schema_json(self) -> str:
        """Return the table's schema in Spark's JSON form."""
        return str(self._table.schema().to_json())

    @property
    def arrow_schema(self) -> pa.Schema:
        """Return the table's schema as a pyarrow schema."""
        import pyarrow as pa

        return pa.schema(self._table.schema().to_arrow())

    @property
    def configuration(self) -> dict[str, str]:
        """Return the table's properties."""
        return dict(self._table.metadata().configuration)

    @property
    def partition_by(self) -> list[str]:
        """Return the table's partition columns."""
        return list(self._table.metadata().partition_columns)

    @property
    def is_empty(self) -> bool:
        """Whether the current version has no file."""
        return not self._table.file_uris()

    def published_version(self, app_id: str) -> int:
        """Return the last batch committed under a transaction id, or -1."""
        version = self._table.transaction_version(app_id)
        return -1 if version is None else int(version)

    def content(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows, in no order, with those of the columns that the table has (None: all of them).

        Not by DeltaTable.to_pyarrow_table: Arrow's threads would call back into Python, which aborts the
        process while the interpreter ends ("terminate called without an active exception").
        """
        import pyarrow as pa
        from deltalake import QueryBuilder

        there = [field.name for field in self._table.schema().fields]
        wanted = [name for name in columns if name in there] if columns is not None else there
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in wanted)
        with self.reaching("sink.unreadable", "cannot be read", "check whether its files were deleted"):
            found = QueryBuilder().register("rows", self._table).execute(f"SELECT {names} FROM rows")  # noqa: S608
            try:
                return pa.RecordBatchReader.from_stream(found).read_all()
            except pa.ArrowException as cause:
                raise OSError(str(cause)) from None

    def rows(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return all rows, with those of the columns that the table has; times are aware, in UTC."""
        found: list[dict[str, Any]] = self.content(columns).to_pylist()
        return found

    def referenced(self) -> set[str]:
        """Return absolute paths of the files of the current version, as in a listing.

        Not DeltaTable.file_uris: it escapes the table's own folder, and leaves the log's escapes as they are.
        """
        import pyarrow as pa

        paths = pa.table(self._table.get_add_actions(flatten=True)).column("path").to_pylist()
        # A shallow clone names files of another table.
        return {p if "://" in p or p.startswith("/") else f"{self.uri}/{p}" for p in map(unquote, paths)}

    def newest_files(self) -> list[tuple[str, int | None]]:
        """Return the files as in `referenced`, newest first, with their rows (None: not in the log)."""
        found = sorted(self._files(), key=lambda each: each["modification_time"], reverse=True)
        paths = [(unquote(each["path"]), each.get("num_records")) for each in found]
        return [(p if "://" in p or p.startswith("/") else f"{self.uri}/{p}", rows) for p, rows in paths]

    def as_of(self, version: int) -> DeltaTableFiles | None:
        """Return the table as it was in a version; None when the log no longer reaches back to it."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        then = DeltaTableFiles(self.uri)
        try:
            then.__dict__["_table"] = DeltaTable(
                self.uri, version=version, storage_options=object_options(self.uri)
            )
        except DeltaError:
            return None
        return then

    def sizes(self) -> list[tuple[tuple[str, ...], int]]:
        """Return partition and bytes of each file of the current version that `compact` can merge."""
        names = [f"partition.{name}" for name in self.partition_by]
        return [
            (tuple(str(row[name]) for name in names), int(row["size_bytes"]))
            for row in self._files()
            if not UNFINDABLE & set(unquote(row["path"]))
        ]

    def _files(self) -> list[dict[str, Any]]:
        """Return path, size and partition of each file of the current version; partitions as text.

        Not the statistics: Spark's times may lie beyond Python's calendar.
        """
        import pyarrow as pa

        found = pa.table(self._table.get_add_actions(flatten=True))
        # Of a table whose files have no statistics, delta-rs leaves the number of rows out.
        figures = {"path", "size_bytes", "modification_time", "num_records"} & set(found.column_names)
        parts = [f"partition.{name}" for name in self.partition_by]
        columns = {name: found[name] for name in figures}
        columns |= {name: found[name].cast(pa.string()) for name in parts}
        rows: list[dict[str, Any]] = pa.table(columns).to_pylist()
        return rows

    def compact(self, change: Change) -> tuple[int, int]:
        """Merge small files, partition by partition, in one commit that changes no row.

        Partitions that delta-rs cannot find (`UNFINDABLE`, of other writers) stay as they are.

        Returns:
            The number of files removed, and the number added.
        """
        with self._committing():
            done = self._table.optimize.compact(
                partition_filters=self._findable() or None,
                commit_properties=commit_properties(change, {}, {}),
            )
        del self.__dict__["_table"]
        return int(done["numFilesRemoved"]), int(done["numFilesAdded"])

    def _findable(self) -> list[tuple[str, str, list[str]]]:
        """Return a condition for each partition column with values in the paths that delta-rs cannot find."""
        values: dict[str, set[str]] = {}
        for row in self._files():
            if UNFINDABLE & set(unquote(row["path"])):
                for name in self.partition_by:
                    value = row[f"partition.{name}"]
                    if isinstance(value, str) and UNFINDABLE & set(value):
                        values.setdefault(name, set()).add(value)
        return [(name, "not in", sorted(some)) for name, some in values.items()]

    def write_again(self, rows: pa.Table, change: Change) -> tuple[int, int]:
        """Replace all rows by `rows` in one commit; columns that the table lacks are added.

        Returns:
            The number of files before and after.
        """
        from deltalake import write_deltalake

        before = len(self._table.file_uris())
        with self._committing():
            write_deltalake(
                self._table,
                rows,
                mode="overwrite",
                schema_mode="overwrite",
                commit_properties=commit_properties(change, {}, {}),
            )
        del self.__dict__["_table"]
        return before, len(self._table.file_uris())

    def append(self, files: Sequence[StagedFile], commit: Commit) -> None:
        """Make staged files visible in addition to the existing rows."""
        self._add("append", files, commit)

    def overwrite(
        self, files: Sequence[StagedFile], commit: Commit, like: DeltaTableFiles | None = None
    ) -> None:
        """Make staged files visible in place of all rows; without files the table is then empty.

        Args:
            like: a table whose columns the table gets in the same commit.
        """
        self._add("overwrite", files, commit, like)

    def merge(self, rows: Iterable[pa.RecordBatch], keys: Sequence[str], commit: Commit) -> None:
        """Upsert rows, which have each key once and are read as needed; NULL keys match NULL keys."""
        same = " AND ".join(f'(t."{key}" IS NOT DISTINCT FROM s."{key}")' for key in keys)
        with self._committing():
            source = _reader(rows, self.arrow_schema)
            merger = self._table.merge(
                source, same, source_alias="s", target_alias="t", commit_properties=_of(commit)
            )
            merger.when_matched_update_all().when_not_matched_insert_all().execute()
        del self.__dict__["_table"]

    def replace(
        self, column: str, interval: Interval, rows: Any, change: Change, info: Mapping[str, str]
    ) -> bool:
        """Replace the rows whose `column` is in the interval by `rows`, in one commit.

        Files that are partly in the interval are written again without those rows. The object works on the
        version that it read first: a later commit that touches the interval wins.

        Args:
            rows: pyarrow RecordBatches, all in the interval; times in `column` need no zone.
            info: further entries for the table's history.

        Returns:
            False when another commit has touched the interval since then; nothing is changed.
        """
        from deltalake import write_deltalake
        from deltalake.exceptions import CommitFailedError

        schema = self.arrow_schema
        with self._committing():
            try:
                write_deltalake(
                    self._table,
                    _reader(rows, schema),
                    mode="overwrite",
                    predicate=_within(column, schema.field(column).type, interval),
                    commit_properties=commit_properties(change, {}, info),
                )
            except CommitFailedError:
                return False
            finally:
                del self.__dict__["_table"]
        return True

    def _add(
        self,
        mode: Literal["append", "overwrite"],
        files: Sequence[StagedFile],
        commit: Commit,
        like: DeltaTableFiles | None = None,
    ) -> None:
        from deltalake.transaction import AddAction

        actions = [
            AddAction(
                # Paths in Delta's log are escaped, and delta-rs escapes them when it writes the log.
                path=unquote(file.action["path"]),
                size=file.action["size"],
                partition_values=file.action.get("partitionValues") or {},
                modification_time=file.action["modificationTime"],
                data_change=True,
                stats=file.action.get("stats") or json.dumps({"numRecords": file.rows}),
            )
            for file in files
        ]
        with self._committing():
            self._table.create_write_transaction(
                actions,
                mode=mode,
                schema=(like or self)._table.schema(),
                partition_by=self.partition_by,
                commit_properties=_of(commit),
            )
        del self.__dict__["_table"]

    def has_change(self, change: Change) -> bool:
        """Whether a commit after the version that the change is based on carries it out."""
        since = -1 if change.based_on is None else change.based_on
        newer = self.version - since
        with self.reaching("sink.unreadable", "cannot be read", "check whether it was moved or deleted"):
            entries = self._table.history(limit=newer) if newer > 0 else []
        return any(entry.get("drawdown.change") == change.change_id for entry in entries)

    def fence(self, lease: Lease) -> None:
        """Make a commit that changes nothing, but makes commits fail that were begun under an older epoch."""
        from deltalake.transaction import CommitProperties, Transaction

        said = CommitProperties(
            custom_metadata={"drawdown.fence": lease.run_id},
            app_transactions=[Transaction(fence_id(lease.name), lease.epoch)],
        )
        with self._committing():
            self._table.create_write_transaction(
                [], "append", self._table.schema(), self.partition_by, commit_properties=said
            )
        del self.__dict__["_table"]

    @contextmanager
    def _committing(self) -> Iterator[None]:
        """Like `_writing`, for one commit to the table; after it the log gets a checkpoint if one is due."""
        version = self.version
        with self._writing():
            yield
        shorten_log(self.uri, version + 1)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Raise ChangedMeanwhileError for a conflict with another commit in the block."""
        from deltalake.exceptions import CommitFailedError

        do = "check that it is a folder, and that this user may write there; nothing was published"
        with self.reaching("sink.unwritable", "cannot be written", do):
            try:
                yield
            except CommitFailedError as conflict:
                raise ChangedMeanwhileError(_plain(conflict)) from None

    @contextmanager
    def reaching(self, error_id: str, what: str, do: str) -> Iterator[None]:
        """Turn errors of Delta or the storage into one SourceError."""
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError) as cause:
            if (of_bucket := of_object_storage(_plain(cause), self.uri)) is not None:
                raise of_bucket from None
            raise SourceError(
                error_id, f"the Delta table {what}: {_plain(cause)}", where=self.uri, do=do
            ) from None


def _plain(cause: Exception) -> str:
    return " ".join(_COLOUR.sub("", str(cause)).replace("↳", "").split())


def _reader(rows: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatchReader:
    """Convert rows for a table with this schema, each batch when it is read."""
    import pyarrow as pa

    tables = (fitting(pa.table(batch), schema) for batch in rows)
    return pa.RecordBatchReader.from_batches(
        schema, (each for table in tables for each in table.to_batches())
    )


def fitting(rows: Any, schema: Any) -> Any:
    """Convert a pyarrow Table for a table with this schema: its columns by name, in its types and order.

    A column that the rows lack is NULL, for example when they were staged before it was added.
    """
    import pyarrow as pa

    there = set(rows.column_names)
    columns = [
        rows[field.name].cast(field.type) if field.name in there else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _within(column: str, kind: Any, interval: Interval) -> str:
    """Return the interval as a condition of Delta's SQL on a column of this Arrow type."""
    import pyarrow as pa

    if pa.types.is_date(kind):
        first, behind = interval.days()
    else:
        zone = "Z" if kind.tz else ""
        first, behind = (
            f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}{zone}" for at in (interval.start, interval.end)
        )
    return f"\"{column}\" >= '{first}' AND \"{column}\" < '{behind}'"


def _of(commit: Commit) -> Any:
    ids = [commit.app_id] if commit.once is None else [commit.app_id, commit.once]
    return commit_properties(commit.change, dict.fromkeys(ids, commit.version), {})


def commit_properties(change: Change, versions: Mapping[str, int], info: Mapping[str, str]) -> Any:
    """Return a commit's properties: its change, batches by transaction id, and the fence of its lease."""
    from deltalake.transaction import CommitProperties, Transaction

    ids = {**versions, fence_id(change.lease): change.epoch}
    transactions = [Transaction(app_id, version) for app_id, version in ids.items()]
    return CommitProperties(custom_metadata={**info_of(change), **info}, app_transactions=transactions)
