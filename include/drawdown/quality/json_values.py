"""Values from Spark and Great Expectations as plain JSON of bounded size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

MAX_ITEMS = 10
MAX_CHARACTERS = 200


def plain(value: Any, max_items: int | None = MAX_ITEMS) -> Any:
    """Return ``value`` in a form that ``json.dumps(..., allow_nan=False)`` accepts.

    Times become ISO 8601 text, decimals and NaN or infinite floats text (JSON cannot represent them exactly),
    binary hexadecimal. Text is cut at 200 characters and a sequence after ``max_items`` (None: never),
    because an observed value can contain every distinct value of a column.
    """
    match value:
        case None | bool() | int():
            return value
        case float():
            # float() also converts numpy's subclass to Python's float.
            return float(value) if math.isfinite(value) else str(float(value))
        case str():
            return value if len(value) <= MAX_CHARACTERS else value[:MAX_CHARACTERS] + "…"
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | timedelta():
            return str(value)
        case bytes() | bytearray():
            return plain("0x" + bytes(value).hex())
        case Mapping():
            # Keys are columns, and a row is shown in full.
            return {str(key): plain(item, max_items) for key, item in value.items()}
    if hasattr(value, "asDict"):  # pyspark's Row, which is also a tuple
        return plain(value.asDict(), max_items)
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        return plain(value.tolist(), max_items)
    if isinstance(value, Iterable):
        return _sequence(list(value), max_items)
    return plain(str(value))


def _sequence(items: list[Any], max_items: int | None) -> list[Any]:
    shown = [plain(item, max_items) for item in items[:max_items]]
    if len(items) > len(shown):
        shown.append(f"… {len(items) - len(shown)} more")
    return shown
