"""Orders and their payments: two streams to join, and the same rows for DuckDB to join."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import duckdb

from drawdown.metastore.records import Run
from tests.support.sandbox import Sandbox

DAY = "2024-01-01"
STREAM = "at TIMESTAMP, id BIGINT"
WATERMARK = ", watermark: {column: at, delay: 10 minutes}"
_SOURCE = "  NAME: {format: json, path: landing/NAME, schema: stream.ddl%s}\n"
_REST = """
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl}
state: {partitions: 2}
"""


def spec(**watermarks: str) -> str:
    """A pipeline.yaml with a source for each name: ``WATERMARK``, or "" for none."""
    named = [(_SOURCE % mark).replace("NAME", name) for name, mark in watermarks.items()]
    return "sources:\n" + "".join(named) + _REST


def joining(sandbox: Sandbox, spec: str, sql: str, out: str, name: str = "paid") -> None:
    """The pipeline, its landing folders there and empty."""
    made = sandbox.pipeline(name, spec, stream_ddl=STREAM, out_ddl=out, transform_sql=sql)
    for source in made.sources:
        (sandbox.storage / "landing" / source).mkdir(parents=True, exist_ok=True)


def clock(text: str) -> datetime:
    return datetime.fromisoformat(f"{DAY} {text}")


def arrive(sandbox: Sandbox, file: str, **rows: Sequence[tuple[int, str]]) -> None:
    """One file for each source named: (id, clock time) of each row."""
    for source, found in rows.items():
        json = [{"id": id, "at": f"{DAY}T{at}:00Z"} for id, at in found]
        sandbox.land_json(f"landing/{source}/{file}.json", json)


def arrive_and_run(
    sandbox: Sandbox, file: str, *, name: str = "paid", **rows: Sequence[tuple[int, str]]
) -> Run:
    arrive(sandbox, file, **rows)
    return sandbox.run(name)


def by_duckdb(sandbox: Sandbox, sql: str, *sources: str) -> list[tuple[Any, ...]]:
    """The rows of a query over all that has landed; each source is a table of its name."""
    with duckdb.connect() as db:
        for source in sources:
            files = sandbox.storage / "landing" / source / "*.json"
            columns = "{'at': 'TIMESTAMP', 'id': 'BIGINT'}"
            db.execute(f"CREATE VIEW {source} AS SELECT * FROM read_json('{files}', columns = {columns})")
        return db.sql(sql).fetchall()


def out(sandbox: Sandbox) -> list[tuple[Any, ...]]:
    """The rows of the sink, their times without a zone as DuckDB gives them."""
    return [tuple(_plain(value) for value in row) for row in sandbox.delta("tables/out")]


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def watermark(*greatest: str) -> datetime:
    """The watermark that these greatest clock times of the sources make, under the policy min."""
    return min(clock(text) for text in greatest) - timedelta(minutes=10)
