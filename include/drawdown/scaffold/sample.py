"""A sample of a source: a file, or records of a topic, with its columns and what reads it.

csv, JSON and parquet are recognised by the file's name, else by its first character.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drawdown.errors import SpecError
from drawdown.scaffold.column_types import SampleColumn, of_texts, of_values
from drawdown.values.json_text import read_json

MAX_ROWS = 10_000
"""Rows that columns are inferred from."""
MAX_BYTES = 16 * 1024 * 1024
_SEPARATORS = ",;\t|"
_MISSING = ("NA", "N/A", "NULL", "null", "None", "-")


@dataclass(frozen=True)
class Sample:
    """What a source looks like.

    Attributes:
        format: ``csv``, ``json``, ``parquet``, or ``kafka``.
        rows: the first rows, by column name; texts where the format has no types.
        options: what the source's ``options:`` must say.
        file: where the rows come from; None for a topic.
        records: the values of a topic's records, as text.
    """

    format: str
    columns: tuple[SampleColumn, ...]
    rows: tuple[Mapping[str, Any], ...]
    options: Mapping[str, str | int | bool] = field(default_factory=dict)
    file: Path | None = None
    records: tuple[str, ...] = ()

    def values(self, column: SampleColumn) -> list[Any]:
        """The values of a column that are not missing."""
        return [value for row in self.rows if (value := row.get(column.name)) is not None]


def read_sample(path: Path) -> Sample:
    """The first 10,000 rows of a csv, JSON or parquet file.

    Raises:
        SpecError: ``init.sample-missing``, ``init.sample-unreadable``, ``init.sample-empty``.
    """
    if not path.is_file():
        raise SpecError(
            "init.sample-missing",
            "there is no such file",
            where=str(path),
            do="name a csv, JSON or parquet file with some rows of the source",
        )
    try:
        if path.suffix == ".parquet":
            return _parquet(path)
        text = _text(path)
        kind = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
        is_json = kind in (".json", ".jsonl", ".ndjson") or text.lstrip()[:1] in ("{", "[")
        return _json(path, text) if is_json else _csv(path, text)
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        raise SpecError(
            "init.sample-unreadable",
            f"the file cannot be read as csv, JSON or parquet: {str(error).splitlines()[0][:200]}",
            where=str(path),
            do="check that it is one of these, in UTF-8",
        ) from None


def of_records(records: Sequence[str], topic: str) -> Sample:
    """Records of a topic: JSON objects give columns, other text gives none.

    Raises:
        SpecError: ``init.sample-empty``.
    """
    if not records:
        raise _empty(f"topic {topic}")
    try:
        rows = tuple(_objects([read_json(record) for record in records]))
    except ValueError:
        return Sample("kafka", (), (), {"subscribe": topic}, records=tuple(records))
    return Sample("kafka", _json_columns(rows), rows, {"subscribe": topic}, records=tuple(records))


def _text(path: Path) -> str:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        content = file.read(MAX_BYTES)
        is_cut = bool(file.read(1))
    # A cut may go through a character; the last line is not whole anyway.
    text = content.decode("utf-8-sig", errors="ignore" if is_cut else "strict")
    return text.rpartition("\n")[0] if is_cut else text


def _csv(path: Path, text: str) -> Sample:
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise _empty(str(path))
    separator = max(_SEPARATORS, key=lambda each: (first.count(each), each == ","))
    parsed = [row for row in csv.reader(lines, delimiter=separator) if row][: MAX_ROWS + 1]
    has_header = _is_header(parsed[0])
    names = parsed[0] if has_header else [f"column_{i}" for i in range(1, len(parsed[0]) + 1)]
    body = parsed[1:] if has_header else parsed
    if not body:
        raise _empty(str(path))
    missing = _missing_word(body, len(names))
    texts: list[dict[str, str | None]] = [
        {name: text if text not in ("", missing) else None for name, text in zip(names, row, strict=False)}
        for row in body
    ]
    columns = [
        of_texts(name, [value for row in texts if (value := row.get(name)) is not None]) for name in names
    ]
    formats = {column.time_format for column in columns if column.type == "TIMESTAMP"}
    if len(formats) > 1:  # `timestampFormat` is for all columns: those of the first format keep their type
        kept = next(c.time_format for c in columns if c.type == "TIMESTAMP")
        columns = [
            c if c.type != "TIMESTAMP" or c.time_format == kept else SampleColumn(c.name, "STRING")
            for c in columns
        ]
        formats = {kept}
    options: dict[str, str | int | bool] = {"header": has_header}
    if separator != ",":
        options["sep"] = separator
    if missing:
        options["nullValue"] = missing
    if form := next((each for each in formats if each), None):
        options["timestampFormat"] = form
    return Sample("csv", tuple(columns), tuple(texts), options, path)


def _is_header(first: Sequence[str]) -> bool:
    """Whether a line names columns: every field has a text of its own that is no value."""
    named = all(field.strip() and of_texts("", [field]).type == "STRING" for field in first)
    return named and len(set(first)) == len(first)


def _missing_word(rows: Sequence[Sequence[str]], width: int) -> str:
    """The word that stands for a missing value in columns that are no text without it."""
    for word in _MISSING:
        for at in range(width):
            texts = [row[at] for row in rows if at < len(row) and row[at]]
            rest = [text for text in texts if text != word]
            if rest and len(rest) < len(texts) and of_texts("", rest).type != "STRING":
                return word
    return ""


def _json(path: Path, text: str) -> Sample:
    whole = text.lstrip().startswith("[")
    parsed = read_json(text) if whole else [read_json(line) for line in text.splitlines() if line.strip()]
    if not parsed:
        raise _empty(str(path))
    rows = tuple(_objects(parsed[:MAX_ROWS]))
    return Sample("json", _json_columns(rows), rows, {"multiLine": True} if whole else {}, path)


def _objects(values: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
    for number, value in enumerate(values, start=1):
        if not isinstance(value, dict):
            raise ValueError(f"record {number} is not a JSON object")
    return values


def _json_columns(rows: Sequence[Mapping[str, Any]]) -> tuple[SampleColumn, ...]:
    names = dict.fromkeys(name for row in rows for name in row)
    return tuple(of_values(name, [row.get(name) for row in rows]) for name in names)


def _parquet(path: Path) -> Sample:
    import pyarrow.parquet as pq

    from drawdown.scaffold.arrow_types import spark_type

    file = pq.ParquetFile(path)
    columns = tuple(SampleColumn(field.name, spark_type(field.type)) for field in file.schema_arrow)
    batch = next(file.iter_batches(batch_size=MAX_ROWS), None)
    if batch is None or not batch.num_rows:
        raise _empty(str(path))
    return Sample("parquet", columns, tuple(batch.to_pylist()), {}, path)


def _empty(where: str) -> SpecError:
    return SpecError(
        "init.sample-empty",
        "the sample has no rows, so no column can be inferred",
        where=where,
        do="take a sample with at least one row",
    )
