"""Column types that mean the same on SQLite and PostgreSQL: exact UTC times, JSON as text, free text."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Dialect, Text
from sqlalchemy.types import TypeDecorator

from drawdown.values.interval import EPOCH


def microseconds(moment: datetime) -> int:
    """Return microseconds since 1970 UTC."""
    return (moment - EPOCH) // timedelta(microseconds=1)


class UtcTime(TypeDecorator[datetime]):
    """A time as whole microseconds since 1970 UTC: Spark's own precision, exact and sorted on both."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """Refuse a time without a zone (ValueError): guessing one would move a watermark."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"time without a zone: {value!r}")
        return microseconds(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        return None if value is None else EPOCH + timedelta(microseconds=value)


class JsonText(TypeDecorator[Any]):
    """JSON in a text column. ASCII only, so that NUL and lone surrogates survive PostgreSQL; None is NULL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


class FreeText(TypeDecorator[str]):
    """Text that may quote data; what PostgreSQL cannot store (NUL, lone surrogates) becomes U+FFFD or '?'."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
