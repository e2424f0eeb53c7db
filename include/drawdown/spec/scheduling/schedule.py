"""When a pipeline runs: a cron expression, a preset, an interval, or after other pipelines (assets)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Annotated, Any

from croniter import CroniterBadDateError, croniter  # type: ignore[import-untyped]
from pydantic import BeforeValidator, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from drawdown.values.duration import Duration
from drawdown.values.model import problem

# Airflow's presets with a meaning for a drain (airflow/utils/dates.py); @once and @continuous have none.
PRESETS = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")

_ASSET = re.compile(r"asset:([a-z][a-z0-9_]{0,62})")
_SHORTEST = timedelta(minutes=1)
_SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)
_DO = (
    'write cron ("5 * * * *"), a preset ("@daily"), an interval ("15 minutes") '
    'a list of pipelines (["asset:flights"]) or none'
)


class AssetRef(str):
    """``asset:<pipeline>``: run after that pipeline has published."""

    __slots__ = ()

    @property
    def pipeline(self) -> str:
        return self.removeprefix("asset:")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, core_schema.str_schema())

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "pattern": f"^{_ASSET.pattern}$", "examples": ["asset:flights"]}


def checked_schedule(value: Any) -> str | list[AssetRef] | None:
    """For BeforeValidator. Raises a PydanticCustomError (``wrong-schedule``)."""
    if value is None or value == "none":
        return None
    if isinstance(value, list) and value:
        return _assets(value)
    if not isinstance(value, str):
        raise problem("wrong-schedule", "is not a schedule", do=_DO)
    if is_interval(value) and Duration.parse(value).delta < _SHORTEST:
        raise problem("wrong-schedule", f"{value!r} is shorter than a minute", do=_DO)
    if value in PRESETS or is_interval(value):
        return value
    if _is_cron(value):
        if not _comes(value):
            raise problem("wrong-schedule", f"{value!r} never occurs", do=_DO)
        return value
    raise problem("wrong-schedule", f"{value[:60]!r} is not a schedule", do=_DO)


def _by_the_clock(value: object) -> str | None:
    schedule = checked_schedule(value)
    if isinstance(schedule, list):
        raise problem(
            "wrong-schedule",
            "it serves all pipelines, so it cannot run after one of them",
            do='write cron or "@daily"',
        )
    return schedule


ClockSchedule = Annotated[str | None, BeforeValidator(_by_the_clock)]
"""The schedule of a DAG for all pipelines; None: only by hand."""


def is_interval(schedule: str) -> bool:
    """Whether a schedule is an interval ("15 minutes") and not cron or a preset."""
    if not schedule[:1].isdigit() or not schedule[-1:].isalpha():
        return False
    try:
        return bool(Duration.parse(schedule).delta)
    except PydanticCustomError:
        return False


def _assets(value: list[Any]) -> list[AssetRef]:
    for index, item in enumerate(value):
        if not isinstance(item, str) or not _ASSET.fullmatch(item):
            raise problem("wrong-schedule", "each item must be asset:<pipeline>", index, do=_DO)
        if item in value[:index]:
            raise problem("wrong-schedule", f"{item!r} stands twice", index, do="remove one of them")
    return [AssetRef(item) for item in value]


@cache
def _comes(cron: str) -> bool:
    """Whether the time ever occurs: the 31st of February does not."""
    try:
        croniter(cron, _SOME_DAY).get_next()
    except CroniterBadDateError:
        return False
    return True


def _is_cron(text: str) -> bool:
    # Five fields only: Airflow reads a sixth as seconds and then never runs more often than a minute.
    # croniter is what Airflow itself reads cron with.
    return len(text) <= 200 and len(text.split()) == 5 and croniter.is_valid(text)
