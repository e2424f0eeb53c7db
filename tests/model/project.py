"""The files of a project: what its pipelines are, and the records that land."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from tests.model.model import Row

FIRST = datetime(2024, 1, 1, tzinfo=UTC)
OUT, READ = "tables/out", "tables/read"
TABLES = (OUT, "quarantine/out", READ)
PROJECT = "held: 30 minutes\nupkeep: {vacuum: 3 hours, records: 3 hours}\n"
SPEC = """
sources:
  events:
    format: json
    path: landing/events
    schema: events.ddl
    options: {OPTIONS}
    watermark: {column: at, delay: 0 seconds}
transform: transform.sql
sink: {KEYS SINK}
state: {partitions: 1}
replay: {interval: 1 day REACH}
"""
READER = """
sources:
  made: {format: delta, path: tables/out, options: {skipChangeCommits: true}}
transform: transform.sql
sink: {format: delta, path: tables/read, schema: out.ddl}
state: {partitions: 1}
"""
EVENTS = "id BIGINT, at TIMESTAMP, k STRING, n INT"
COLUMNS = "id BIGINT, at TIMESTAMP, k STRING, n INT, v INT"
TRANSFORM = "SELECT id, at, k, n, {version} AS v FROM events"
DAY = "SELECT id, at, k, n, {version} AS v, CAST(at AS DATE) AS day FROM events"
REACH = ", lookback: 2 hours, lookahead: 2 hours"
WINDOWS = {
    "windows": "SELECT window.start AS at, count(*) AS n FROM events GROUP BY window(at, '1 hour')",
    "windows by their end": "SELECT window.end AS at, count(*) AS n FROM events"
    " GROUP BY window(at, '1 hour')",
    "windows with an offset": "SELECT window.start AS at, count(*) AS n FROM events"
    " GROUP BY window(at, '1 hour', '1 hour', '15 minutes')",
    "windows that overlap": "SELECT window.start AS at, count(*) AS n FROM events"
    " GROUP BY window(at, '2 hours', '1 hour')",
}
"""By their kind; ``declared`` behind it: with what such windows need of their neighbours."""
COPIED = """
sources:
  raw: {format: delta, path: landing/raw}
transform: transform.sql
sink: {format: delta, path: tables/copied, schema: out.ddl}
state: {partitions: 1}
"""
QUALITY = """
rules: [{{name: small, check: "n < {bound}", on_fail: quarantine}}]
expectations:
  - {{type: expect_column_values_to_not_match_regex, kwargs: {{column: CHECKED, regex: marker}}}}
"""
NUMBERS: dict[str, int] = {"bad": 95, "worst": 150}


def record(row: Row) -> bytes:
    if row.kind == "malformed":
        return f'{{"id": {row.id}, "at": broken'.encode()
    if row.kind == "not-utf8":
        return f'{{"id": {row.id}, "at": broken '.encode() + b"\xff\xfe"
    at = row.at.isoformat() if row.at else None
    k = "marker" if row.kind == "marker" else "a"
    return json.dumps({"id": row.id, "at": at, "k": k, "n": NUMBERS.get(row.kind, 1)}).encode()
