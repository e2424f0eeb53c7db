"""The Spark type of a column, inferred from the values of a sample.

Conservative: a type is chosen only when every value fits it, and text that could lose something as a number
(a leading zero, more digits than a BIGINT holds) stays text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
# At most 15 digits before the point: a DOUBLE would change longer numbers.
_FRACTION = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?")
_MONEY = re.compile(r"-?(0|[1-9][0-9]{0,15})(\.[0-9]{1,2})?")
_MONEY_NAME = re.compile(r"amount|price|cost|fee|revenue|salary|balance|subtotal|discount|tax", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
OTHER_TIMES: Mapping[str, str] = {
    "%d.%m.%Y %H:%M:%S": "dd.MM.yyyy HH:mm:ss",
    "%d.%m.%Y %H:%M": "dd.MM.yyyy HH:mm",
    "%d/%m/%Y %H:%M:%S": "dd/MM/yyyy HH:mm:ss",
    "%d/%m/%Y %H:%M": "dd/MM/yyyy HH:mm",
    "%m/%d/%Y %H:%M:%S": "MM/dd/yyyy HH:mm:ss",
    "%m/%d/%Y %H:%M": "MM/dd/yyyy HH:mm",
    "%Y/%m/%d %H:%M:%S": "yyyy/MM/dd HH:mm:ss",
    "%Y%m%d%H%M%S": "yyyyMMddHHmmss",
}
"""Formats of times that Spark reads only with ``timestampFormat``: for Python, and for Spark."""


@dataclass(frozen=True)
class SampleColumn:
    """A column of a sample.

    Attributes:
        name: as the sample spells it.
        type: as Spark's DDL writes it.
        time_format: what ``timestampFormat`` must say; None where Spark reads the times by itself.
    """

    name: str
    type: str
    time_format: str | None = None

    @property
    def plain_name(self) -> str:
        """A name that needs no quotes in SQL and that every table format takes."""
        words = re.sub(r"[^A-Za-z0-9]+", "_", self.name).strip("_").lower()
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.name):
            return self.name
        return words if words and not words[0].isdigit() else f"column_{words}".rstrip("_")

    @property
    def quoted(self) -> str:
        """The name as SQL and DDL need it."""
        escaped = self.name.replace("`", "``")
        return self.name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.name) else f"`{escaped}`"


def of_texts(name: str, texts: Sequence[str]) -> SampleColumn:
    """A column of a text format: the narrowest type that takes every text; STRING where there is none.

    Args:
        texts: the values that are not missing.
    """
    if not texts:
        return SampleColumn(name, "STRING")
    if all(text.lower() in ("true", "false") for text in texts):
        return SampleColumn(name, "BOOLEAN")
    if _MONEY_NAME.search(name) and all(_MONEY.fullmatch(text) for text in texts):
        return SampleColumn(name, "DECIMAL(18,2)")
    for type, form in (("BIGINT", _WHOLE), ("DOUBLE", _FRACTION)):
        if all(form.fullmatch(text) for text in texts):
            return SampleColumn(name, type)
    if all(_DATE.fullmatch(text) and as_time(text) for text in texts):
        return SampleColumn(name, "DATE")
    if all(_TIME.fullmatch(text) and as_time(text) for text in texts):
        return SampleColumn(name, "TIMESTAMP")
    fitting = [spark for python, spark in OTHER_TIMES.items() if all(as_time(text, python) for text in texts)]
    # Two formats that both fit are day and month in either order: nothing in the sample tells which.
    return SampleColumn(name, "TIMESTAMP", fitting[0]) if len(fitting) == 1 else SampleColumn(name, "STRING")


def as_time(value: Any, form: str | None = None) -> datetime | None:
    """A value of a sample as a time in UTC; None when it is none.

    Args:
        form: of ``strptime``; ISO 8601 where it is None.
    """
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if not isinstance(value, str):
        return None
    try:
        found = datetime.strptime(value, form) if form else datetime.fromisoformat(value)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def time_of(value: Any, column: SampleColumn) -> datetime | None:
    """A value of a column as a time in UTC; None when it is none."""
    form = next((python for python, spark in OTHER_TIMES.items() if spark == column.time_format), None)
    return as_time(value, form)


def of_values(name: str, values: Iterable[Any]) -> SampleColumn:
    """A column of JSON: the type that takes every value, STRING where values are of several kinds."""
    return SampleColumn(name, _type_of([value for value in values if value is not None]))


def _type_of(values: Sequence[Any]) -> str:
    kinds = {type(value) for value in values}
    if kinds == {dict}:
        fields = list(dict.fromkeys(key for value in values for key in value))
        parts = (of_values(key, [value.get(key) for value in values]) for key in fields)
        return f"STRUCT<{', '.join(f'{part.quoted}: {part.type}' for part in parts)}>" if fields else "STRING"
    if kinds == {list}:
        return f"ARRAY<{_type_of([each for value in values for each in value if each is not None])}>"
    if kinds == {bool}:
        return "BOOLEAN"
    if kinds == {int}:
        return "BIGINT" if all(-(2**63) <= value < 2**63 for value in values) else "STRING"
    if kinds and kinds <= {int, float}:
        return "DOUBLE"
    if kinds == {str}:
        found = of_texts("", values)
        return found.type if found.type in ("DATE", "TIMESTAMP") and not found.time_format else "STRING"
    if kinds == {datetime}:
        return "TIMESTAMP"
    return "DATE" if kinds == {date} else "STRING"
