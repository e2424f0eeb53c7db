"""The folder of a pipeline over a sample: its texts, by relative path.

The transform passes every column on under a name that needs no quotes; its test is the first rows of the
sample, which must come out as they went in.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import yaml

from drawdown.scaffold.column_types import SampleColumn, time_of
from drawdown.scaffold.sample import Sample
from drawdown.scaffold.suggestion import EventTime, Suggestion

_TEST_ROWS = 5
_SOURCE_NAME = 40


def source_name(told: str) -> str:
    """A name for the source, after its file or topic; the prefix keeps it apart from words of SQL."""
    words = re.sub(r"[^a-z0-9]+", "_", told.lower()).strip("_")[:_SOURCE_NAME].rstrip("_")
    return f"raw_{words}" if words else "raw_rows"


def folder_files(name: str, source: str, sample: Sample, found: Suggestion) -> dict[str, str | bytes]:
    """The files of the folder.

    Args:
        name: the pipeline's. source: the name by which the transform knows the sample.
    """
    outputs = _output_names(sample.columns)
    wave = _wave(sample)
    files: dict[str, str | bytes] = {
        "pipeline.yaml": _lines(_pipeline(name, source, sample, found)),
        "quality.yaml": _lines(_quality(found, outputs)),
        "transform.sql": _transform(source, sample, outputs),
        "schemas/output.ddl": _ddl(_output_columns(sample, outputs)),
        "tests/first/case.yaml": _lines(_case(source, wave)),
        f"tests/first/{wave}": _input(sample),
        "tests/first/wave1.expected.jsonl": _expected(sample, outputs),
    }
    if sample.columns:
        files["schemas/input.ddl"] = _ddl([(each.quoted, each.type) for each in sample.columns])
    return files


def _flow(value: Mapping[str, Any]) -> str:
    """A mapping on one line of YAML."""
    return str(yaml.safe_dump(dict(value), default_flow_style=True, sort_keys=False, width=10_000)).strip()


def _lines(lines: Iterator[str]) -> str:
    return "\n".join(lines) + "\n"


def _output_names(columns: Sequence[SampleColumn]) -> dict[str, str]:
    """By the sample's name the output's; two that would be the same are numbered."""
    names: dict[str, str] = {}
    for column in columns:
        name, number = column.plain_name, 2
        while name.lower() in (taken.lower() for taken in names.values()):
            name, number = f"{column.plain_name}_{number}", number + 1
        names[column.name] = name
    return names


def _output_columns(sample: Sample, outputs: Mapping[str, str]) -> list[tuple[str, str]]:
    if not sample.columns:
        return [("value", "STRING"), ("timestamp", "TIMESTAMP")]
    return [(outputs[column.name], column.type) for column in sample.columns]


def _ddl(columns: Sequence[tuple[str, str]]) -> str:
    return ",\n".join(f"{name} {type}" for name, type in columns) + "\n"


def _pipeline(name: str, source: str, sample: Sample, found: Suggestion) -> Iterator[str]:
    yield from (
        "description: What the pipeline is for, in one sentence",
        'schedule: null              # by hand; or "@hourly", "15 minutes", "5 * * * *"',
        "owner: drawdown",
        "",
        "sources:",
        f"  {source}:  # the transform knows the source by this name",
        f"    format: {sample.format}",
    )
    if sample.format == "kafka":
        yield f"    value: {'json' if sample.columns else 'string'}"
    else:
        yield f"    path: landing/{name}  # below storage_root of include/project.yaml; move whole files in"
    if sample.columns:
        yield "    schema: schemas/input.ddl  # inferred from the sample: check the types"
    if sample.options:
        yield f"    options: {_flow(sample.options)}"
    if found.event_time:
        yield from _watermark(found.event_time)
    else:
        yield "    # No watermark: the sample has no column that is a time in every row."
    yield from (
        "",
        "transform: transform.sql    # or transform.py",
        "",
        "sink:",
        "  format: delta",
        f"  path: tables/{name}",
        "  schema: schemas/output.ddl",
        "  mode: append",
    )
    if found.event_time:
        yield f"  time_column: {found.event_time.column.name}"
    for column, values in found.few_values.items():
        yield f"  # partition_by: [{column.plain_name}]  # {len(values)} values in the sample"
    yield from (
        "  publish: audited  # readers see a run's rows only after quality.yaml has judged them",
        "",
        "state: {partitions: 2}  # fixed by the first run",
    )


def _watermark(found: EventTime) -> Iterator[str]:
    late = f"up to {_words(found.late)} behind" if found.late else "in order of time"
    yield f"    # In the sample rows come {late}. A row more than the delay behind the newest counts as late."
    future = ", max_future: 1 hour" if found.in_past else ""
    yield f"    watermark: {{column: {found.column.name}, delay: {found.delay}{future}}}"


def _words(span: timedelta) -> str:
    """A span rounded up to whole minutes, or to hours where it is more than two of them."""
    minutes = -(-int(span.total_seconds()) // 60) or 1
    hours = -(-minutes // 60)
    return f"{hours} hours" if hours > 2 else "1 minute" if minutes == 1 else f"{minutes} minutes"


def _quality(found: Suggestion, outputs: Mapping[str, str]) -> Iterator[str]:
    if found.never_negative:
        yield "# Row rules judge each row before the transform: warn, quarantine or fail."
        yield "rules:"
        for column in found.never_negative:
            rule = {"name": _rule_name(column), "check": f"{column.quoted} >= 0", "on_fail": "warn"}
            yield f"  - {_flow(rule)}"
        yield ""
    yield "# Expectations (Great Expectations) judge the slice: all rows not yet published."
    expected = list(_expectations(found, outputs))
    yield "expectations:" if expected else "expectations: []"
    yield from (f"  - {_flow(each)}" for each in expected)


def _rule_name(column: SampleColumn) -> str:
    return f"{column.plain_name.lower()[:40].strip('_') or 'column'}_not_negative".lstrip("0123456789_")


def _expectations(found: Suggestion, outputs: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for column in found.never_missing:
        kwargs = {"column": outputs[column.name]}
        yield {"type": "expect_column_values_to_not_be_null", "kwargs": kwargs}
    if found.key:
        yield {"type": "expect_column_values_to_be_unique", "kwargs": {"column": outputs[found.key.name]}}
    for column, values in found.few_values.items():
        kwargs_of_set = {"column": outputs[column.name], "value_set": list(values)}
        yield {"type": "expect_column_values_to_be_in_set", "kwargs": kwargs_of_set, "severity": "warn"}


def _transform(source: str, sample: Sample, outputs: Mapping[str, str]) -> str:
    if not sample.columns:
        return f"SELECT\n  value,\n  timestamp\nFROM {source}\n"
    parts = [
        column.quoted if outputs[column.name] == column.name else f"{column.quoted} AS {outputs[column.name]}"
        for column in sample.columns
    ]
    return "SELECT\n  " + ",\n  ".join(parts) + f"\nFROM {source}\n"


def _wave(sample: Sample) -> str:
    suffixes = {"csv": "csv", "json": "json", "parquet": "parquet"}
    return f"wave1.{suffixes.get(sample.format, 'jsonl' if sample.columns else 'txt')}"


def _case(source: str, wave: str) -> Iterator[str]:
    yield "description: The first rows of the sample come out as they went in"
    yield "waves: # one run each; the files of a source arrive before it"
    yield f"  - {source}: [{wave}]"


def _input(sample: Sample) -> str | bytes:
    rows = sample.rows[:_TEST_ROWS]
    if sample.records:
        return "".join(f"{record}\n" for record in sample.records[:_TEST_ROWS])
    if sample.format == "parquet":
        return _parquet(sample)
    if sample.format == "json":
        text = [json.dumps(row, ensure_ascii=False) for row in rows]
        return json.dumps(list(rows)) if sample.options.get("multiLine") else "".join(f"{t}\n" for t in text)
    written = io.StringIO()
    writer = csv.writer(written, delimiter=str(sample.options.get("sep", ",")), lineterminator="\n")
    names = [column.name for column in sample.columns]
    if sample.options.get("header"):
        writer.writerow(names)
    missing = sample.options.get("nullValue", "")
    writer.writerows([missing if row.get(name) is None else row[name] for name in names] for row in rows)
    return written.getvalue()


def _parquet(sample: Sample) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    written = pa.BufferOutputStream()
    first = next(pq.ParquetFile(sample.file).iter_batches(_TEST_ROWS))
    pq.write_table(pa.Table.from_batches([first]), written)
    return bytes(written.getvalue())


def _expected(sample: Sample, outputs: Mapping[str, str]) -> str:
    if not sample.columns:
        return "".join(f"{json.dumps({'value': record})}\n" for record in sample.records[:_TEST_ROWS])
    rows = [
        {outputs[column.name]: _plain(row.get(column.name), column) for column in sample.columns}
        for row in sample.rows[:_TEST_ROWS]
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _plain(value: Any, column: SampleColumn) -> Any:
    """A value as a test's file writes it: times in ISO 8601."""
    if column.time_format:
        found = time_of(value, column)
        return found.isoformat() if found else None
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: _plain(each, column) for key, each in value.items()}
    if isinstance(value, list):
        if value and isinstance(value[0], tuple):  # as Arrow gives a map
            return {str(key): _plain(each, column) for key, each in value}
        return [_plain(each, column) for each in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
