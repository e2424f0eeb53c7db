"""The quarantine of an older Drawdown, whose text may contain bytes that are not UTF-8.

Spark writes these bytes, but Arrow's readers refuse the table. Its files are read one by one here: text gets
replacement characters, and `raw` the record's bytes, as in current tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from drawdown.delta.table import DeltaTableFiles, fitting
from drawdown.errors import RefusedError, SourceError
from drawdown.metastore.records import Change
from drawdown.quarantine.row_keys import keys_of
from drawdown.storage import Storage
from drawdown.storage.parquet_file import read_parquet
from drawdown.values.moments import YEARS

if TYPE_CHECKING:
    import pyarrow as pa

_RECORD, _RAW, _TIME = "payload", "raw", "event_time"


def content_of(storage: Storage, table: DeltaTableFiles, columns: Sequence[str]) -> pa.Table:
    """Like `DeltaTableFiles.content`, but also reads tables with invalid UTF-8.

    Raises:
        SourceError: ``sink.unreadable``: it cannot be read for another reason.
    """
    try:
        return _in_years(table.content(columns))
    except SourceError:
        content = _decoded(storage, table)
        if content is None:
            raise
        return _in_years(content.select([name for name in columns if name in content.column_names]))


def _in_years(content: pa.Table) -> pa.Table:
    """Return the table with NULL for event times that Python's calendar lacks; older versions kept them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if _TIME not in content.column_names:
        return content
    at = content[_TIME]
    micros = at.cast(pa.timestamp("us", at.type.tz)).cast(pa.int64())
    known = pc.and_(pc.greater_equal(micros, YEARS[0]), pc.less_equal(micros, YEARS[1]))
    place = content.column_names.index(_TIME)
    return content.set_column(place, _TIME, pc.if_else(known, at, pa.scalar(None, at.type)))


def compact(storage: Storage, table: DeltaTableFiles, change: Change) -> tuple[int, int]:
    """As `DeltaTableFiles.compact`; a table with invalid text is rewritten as valid UTF-8.

    Raises:
        SourceError: ``sink.unreadable``, ``sink.unwritable``.
    """
    try:
        return table.compact(change)
    except SourceError:
        content = _decoded(storage, table)
        if content is None:
            raise
        return table.write_again(content, change)


def without(
    storage: Storage, table: DeltaTableFiles, keys: Collection[str], begin: Callable[[int], Change]
) -> None:
    """Write the table again without the rows of these keys, in one commit.

    Args:
        begin: begins the change in the register, given the table's version.

    Raises:
        SourceError: ``sink.unreadable``, ``sink.unwritable``.
    """
    import pyarrow as pa

    schema = table.arrow_schema
    if _RAW not in schema.names:
        schema = schema.append(pa.field(_RAW, pa.binary()))
    content = fitting(content_of(storage, table, schema.names), schema)
    kept = pa.array([key not in keys for key in keys_of(content)], pa.bool_())
    table.write_again(content.filter(kept), begin(table.version))


def _decoded(storage: Storage, table: DeltaTableFiles) -> pa.Table | None:
    """All rows; None where no file has such text, or one cannot be read at all."""
    import pyarrow as pa

    schema = table.arrow_schema
    if _RAW not in schema.names:
        schema = schema.append(pa.field(_RAW, pa.binary()))
    parts, found = [], False
    try:
        for path in sorted(table.referenced()):
            part = read_parquet(storage, storage.relative(path))
            for name in [field.name for field in part.schema if _is_unfit(part[field.name])]:
                found = True
                part = _with_text(part, name)
            parts.append(fitting(part, schema))
    except (OSError, RefusedError, pa.ArrowException):
        return None
    return pa.concat_tables(parts) if found else None


def _is_unfit(column: Any) -> bool:
    import pyarrow as pa

    if not pa.types.is_string(column.type):
        return False
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return True
    return False


def _with_text(part: pa.Table, name: str) -> pa.Table:
    """The rows with replacement characters in a column; the bytes of a record are kept as `raw`."""
    import pyarrow as pa

    chunks = [chunk.view(pa.binary()).to_pylist() for chunk in part[name].chunks]
    came: list[bytes | None] = [value for chunk in chunks for value in chunk]
    text = [None if value is None else value.decode(errors="replace") for value in came]
    part = part.set_column(part.column_names.index(name), name, pa.array(text, pa.string()))
    if name != _RECORD:
        return part
    fits = [
        value is None or shown.encode() == value for value, shown in zip(came, map(str, text), strict=True)
    ]
    raw = [None if fit else value for fit, value in zip(fits, came, strict=True)]
    if _RAW in part.column_names:
        known = part[_RAW].to_pylist()
        raw = [one or other for one, other in zip(known, raw, strict=True)]
        part = part.drop_columns([_RAW])
    return part.append_column(_RAW, pa.array(raw, pa.binary()))
