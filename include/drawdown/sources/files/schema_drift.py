"""Whether a file still has the columns of its source's schema, found without reading its rows.

csv with a header: its first line. parquet: its footer, names and types. json: the keys of the records in
its first 64 KiB; a record may leave a key out, so a missing key is no drift. Not checked: compressed csv and
json files, nested fields, and values of another type in csv and json (those records are malformed).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drawdown.sources.files.footers import parquet_without_rows
from drawdown.spec import Source
from drawdown.storage import FileInfo, Storage
from drawdown.values.json_text import read_json

if TYPE_CHECKING:
    import pyarrow as pa

_SAMPLE = 65_536
_SHOWN = 5
# Types that Spark reads into a wider column without loss (ParquetVectorUpdaterFactory, Spark 4.2).
_WIDER: Mapping[str, tuple[str, ...]] = {
    "tinyint": ("smallint", "int", "bigint", "double"),
    "smallint": ("int", "bigint", "double"),
    "int": ("bigint", "double"),
    "float": ("double",),
}
_SPARK_TYPES = {
    "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "float": "float",
    "double": "double", "bool": "boolean", "string": "string", "large_string": "string",
    "binary": "binary", "large_binary": "binary", "date32[day]": "date",
}  # fmt: skip


@dataclass(frozen=True)
class Drift:
    """How the columns of one file differ; Spark cannot read the file at all unless it is ``readable``."""

    what: str
    readable: bool = True


def drift_of(storage: Storage, source: Source, file: FileInfo, columns: Mapping[str, str]) -> Drift | None:
    """Return how a file differs from its source's schema; None when it does not or cannot be checked.

    Args:
        columns: the schema's top-level columns: the type, as Spark writes it, by name.
    """
    parts = {part.split("=", 1)[0] for part in file.relative.split("/")[:-1] if "=" in part}
    own = {name: kind for name, kind in columns.items() if name not in parts}
    options = {name.lower(): str(value) for name, value in source.options.items()}
    try:
        if source.format == "parquet":
            return _of_parquet(storage, file, own)
        if source.format == "csv":
            return _of_header(_first_line(storage, file, options), own, options)
        return _of_keys(_sample(storage, file), own, options)
    except (FileNotFoundError, UnicodeDecodeError, LookupError, csv.Error):
        # The batch reports a file that is gone or cannot be read.
        return None


def _of_header(header: str, columns: Mapping[str, str], options: Mapping[str, str]) -> Drift | None:
    sep = options.get("sep", options.get("delimiter", ","))
    quote = options.get("quote", '"')
    if not header.strip() or len(sep) != 1 or len(quote) > 1:
        return None
    reader = csv.reader([header], delimiter=sep, quotechar=quote or None)
    found = [name.strip() for name in next(reader)]
    differing = _names(found, columns)
    if not differing and [name.lower() for name in found] != [name.lower() for name in columns]:
        # Spark matches columns by position, unless enforceSchema is false.
        return Drift(f"its columns are in another order: {', '.join(found)}")
    return Drift(differing) if differing else None


def _of_keys(sample: str, columns: Mapping[str, str], options: Mapping[str, str]) -> Drift | None:
    texts = [sample] if options.get("multiline", "").lower() == "true" else sample.splitlines()
    known = {name.lower() for name in columns}
    more: dict[str, None] = {}
    for text in texts:
        try:
            record = read_json(text)
        except ValueError:
            continue
        for each in record if isinstance(record, list) else [record]:
            if isinstance(each, dict):
                more |= dict.fromkeys(key for key in each if key.lower() not in known)
    return Drift(_listed("more", list(more))) if more else None


def _of_parquet(storage: Storage, file: FileInfo, columns: Mapping[str, str]) -> Drift | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with storage.open(file.relative) as opened:
        footer = parquet_without_rows(opened, file.size)
    if footer is None:
        return None
    try:
        schema = pq.read_schema(pa.BufferReader(footer))
    except (pa.ArrowException, OSError, ValueError, RecursionError):
        # The batch names the file if Spark cannot read it either.
        return None
    differing = _names(schema.names, columns)
    found = {field.name.lower(): _spark_type(field.type) for field in schema}
    retyped = [
        f"{name} is {found[name.lower()]} and not {kind}"
        for name, kind in columns.items()
        if not _fits(found.get(name.lower()), kind)
    ]
    said = "; ".join(part for part in (differing, *retyped) if part)
    return Drift(said, readable=not retyped) if said else None


def _names(found: Sequence[str], columns: Mapping[str, str]) -> str:
    here, known = {name.lower() for name in found}, {name.lower() for name in columns}
    more = [name for name in found if name.lower() not in known]
    fewer = [name for name in columns if name.lower() not in here]
    return "; ".join(_listed(word, names) for word, names in (("more", more), ("fewer", fewer)) if names)


def _listed(word: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} others" if len(names) > _SHOWN else "")
    return f"it has {word} columns: {shown}" if word == "more" else f"it lacks columns: {shown}"


def _fits(found: str | None, kind: str) -> bool:
    """Whether a type fits; nested types, and those that cannot be compared by name (None), pass."""
    return found is None or found == kind or kind in _WIDER.get(found, ())


def _spark_type(kind: pa.DataType) -> str | None:
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _SPARK_TYPES.get(str(kind))


def _first_line(storage: Storage, file: FileInfo, options: Mapping[str, str]) -> str:
    encoding = options.get("encoding", options.get("charset", "utf-8-sig"))
    with storage.open(file.relative) as opened:
        sample = opened.read(_SAMPLE)
    # The last line may be cut off.
    lines = sample.splitlines() if len(sample) < _SAMPLE else sample.splitlines()[:-1]
    comment = options.get("comment")
    texts = (line.decode(encoding) for line in lines)
    return next((text for text in texts if text.strip() and not (comment and text.startswith(comment))), "")


def _sample(storage: Storage, file: FileInfo) -> str:
    with storage.open(file.relative) as opened:
        return opened.read(_SAMPLE).decode("utf-8", "ignore")
