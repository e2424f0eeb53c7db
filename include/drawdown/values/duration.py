"""Durations in Spark's interval words: "30 minutes", "1 day", "1 hour 30 minutes"."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from drawdown.values.model import problem

# In microseconds, the finest that Spark and Python have.
_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_PART = rf"[0-9]{{1,9}} +(?:{'|'.join(_UNITS)})s?"
_DURATION = re.compile(rf"{_PART}(?: +{_PART})*")
_LONGEST = 36_500 * _UNITS["day"]
# Spark's JavaUtils.timeStringAs; a number alone is milliseconds.
_OPTION = re.compile(r"\s*(\d{1,18})\s*(us|ms|s|m|min|h|d)?\s*", re.IGNORECASE | re.ASCII)
_OPTION_MS = {"us": 0.001, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def option_ms(value: object) -> float | None:
    """Milliseconds of a duration as options of Spark's sources are written ("15m"); None for other text."""
    found = _OPTION.fullmatch(str(value))
    return None if found is None else int(found[1]) * _OPTION_MS[(found[2] or "ms").lower()]


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time: ``text`` for Spark, ``delta`` for Python and Airflow.

    Months and years are refused: they have no fixed length, and a watermark needs one.
    """

    text: str
    delta: timedelta

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Parse interval words of up to 100 years; raises a PydanticCustomError (``wrong-duration``)."""
        microseconds = 0
        if len(text) <= 100 and _DURATION.fullmatch(text):
            words = text.split()
            for number, unit in zip(words[::2], words[1::2], strict=True):
                microseconds += int(number) * _UNITS[unit.removesuffix("s")]
            if microseconds <= _LONGEST:
                return cls(text, timedelta(microseconds=microseconds))
        raise problem(
            "wrong-duration",
            "is not a duration",
            do='write a number and a unit from microseconds to weeks, for example "30 minutes" or "1 day"',
        )

    def __str__(self) -> str:
        return self.text

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _validated, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "pattern": f"^{_DURATION.pattern}$", "examples": ["30 minutes", "1 day"]}


def _validated(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, str):
        return Duration.parse(value)
    raise problem("wrong-type", "a duration needs its unit", do='write for example "30 minutes"')


def _positive(value: Duration) -> Duration:
    if not value.delta:
        raise problem("wrong-duration", "must be longer than zero", do="make it longer, or remove the key")
    return value


PositiveDuration = Annotated[Duration, AfterValidator(_positive)]


def at_most(longest: str) -> Callable[[Duration], Duration]:
    """Return a validator that refuses a longer duration."""

    def checked(value: Duration) -> Duration:
        if value.delta > Duration.parse(longest).delta:
            raise problem("wrong-duration", f"must be {longest} at most", do="make it shorter")
        return value

    return checked
