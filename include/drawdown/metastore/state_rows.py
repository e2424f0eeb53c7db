"""How many rows a pipeline keeps in its state, from the recorded progress of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

OF_ROCKSDB = "rocksdb"
"""Prefix of the metrics of a RocksDB state store."""


def state_rows(operators: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the rows of all operators of one entry; None when one of them did not count.

    RocksDB counts its rows only with `rocksdb.trackTotalNumberOfRows`, and reports 0 otherwise. In entries of
    versions that did not distinguish the two (they lack ``counted``), such a 0 means unknown.
    """
    rows = [_rows(each) for each in operators]
    return None if None in rows else sum(each for each in rows if each is not None)


def _rows(operator: Mapping[str, Any]) -> int | None:
    rows: int | None = operator["rows"]
    by_rocksdb = any(name.startswith(OF_ROCKSDB) for name in operator.get("metrics", ()))
    return None if rows == 0 and by_rocksdb and "counted" not in operator else rows


def with_known_rows(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of `Run.progress` with None as the rows of each operator that did not count."""
    return {**entry, "operators": [{**each, "rows": _rows(each)} for each in entry["operators"]]}
