"""The key of a quarantined row is what it has always been, however many are made at once."""

from __future__ import annotations

import hashlib
import itertools
import json
from typing import Any

import pyarrow as pa

from drawdown.quarantine.row_keys import keys_of

_TEXTS = (
    "plain",
    "",
    None,
    'a "quoted" one',
    "back\\slash",
    "a\nline",
    "Grüße 😀",
    "\x7f",
    '","',
    "null",
    "{}",
)
_REASONS = (
    ["small"],
    ["small", "big"],
    [],
    None,
    ['a"b'],
    ["ä"],
    ["a\\"],
    [""],
    ["a, b"],
    [None],
    ["x", None],
)
_NAMES = ("source", "payload", "file", "topic", "partition", "offset", "generation", "batch_id", "run_id")
_KINDS = [
    *(pa.field(name, pa.string()) for name in ("source", "payload", "file", "topic", "run_id")),
    pa.field("partition", pa.int32()),
    *(pa.field(name, pa.int64()) for name in ("offset", "generation", "batch_id")),
    pa.field("reasons", pa.list_(pa.string())),
    pa.field("raw", pa.binary()),
]


def by_json(row: dict[str, Any]) -> str:
    """As decisions of every version before have named it."""
    raw = [] if row["raw"] is None else [row["raw"].hex()]
    told = [row["reasons"] or [], *(row[name] for name in _NAMES), *raw]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def rows() -> list[dict[str, Any]]:
    found = []
    for number, (text, reasons) in enumerate(itertools.product(_TEXTS, _REASONS)):
        whole = number if number % 3 else None
        row = dict.fromkeys(_NAMES, whole) | {"source": "events", "payload": text, "file": None}
        row |= {"topic": text if number % 2 else None, "run_id": "run", "batch_id": -number}
        found.append(row | {"reasons": reasons, "raw": None if number % 5 else b"\xff\x00"})
    return found


def test_every_key_is_that_of_the_row_by_itself() -> None:
    made = rows()
    table = pa.Table.from_pylist(made, schema=pa.schema(_KINDS))
    assert keys_of(table) == [by_json(row) for row in made]
    assert keys_of(pa.concat_tables([table.slice(3, 20), table.slice(0, 3)])) == [
        by_json(row) for row in [*made[3:23], *made[:3]]
    ]


def test_columns_that_an_older_table_lacks_are_null() -> None:
    made = [{**row, "raw": None, "generation": None} for row in rows()]
    table = pa.Table.from_pylist(made, schema=pa.schema(_KINDS)).drop_columns(["raw", "generation"])
    assert keys_of(table) == [by_json(row) for row in made]
