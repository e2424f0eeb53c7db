"""A spec's schedule as Airflow's: cron text and presets, a timedelta, or assets."""

from __future__ import annotations

from datetime import timedelta
from functools import cache

from airflow.sdk import Asset

from drawdown.spec import Duration, Pipeline, asset_name
from drawdown.spec.scheduling.schedule import is_interval
from drawdown.values.text import lasting

Schedule = str | timedelta | list[Asset] | None


def schedule_of(pipeline: Pipeline) -> Schedule:
    """Return what `DAG(schedule=...)` takes. A list of assets means: when all of them were updated."""
    schedule = pipeline.schedule
    if isinstance(schedule, list):
        return [asset_of(ref.pipeline) for ref in schedule]
    return by_the_clock(schedule)


def by_the_clock(schedule: str | None) -> str | timedelta | None:
    """Convert a spec's schedule that names no assets."""
    if schedule is not None and is_interval(schedule):
        return Duration.parse(schedule).delta
    return schedule


@cache
def asset_of(pipeline: str) -> Asset:
    """Return the asset that is updated when this pipeline publishes."""
    return Asset(name=asset_name(pipeline), uri=f"drawdown://{pipeline}")


def asset_of_partitions(pipeline: str, unit: str) -> Asset:
    """Return the asset whose events have the complete days or hours of this pipeline as partition keys.

    It is one of its own because an event with a partition key starts no DAG that is scheduled by the
    asset without partitions, and the other way round.
    """
    return Asset(name=f"{asset_name(pipeline)}.{unit}s", uri=f"drawdown://{pipeline}/{unit}s")


def in_words(schedule: object) -> str:
    """Return a schedule as text: `5 * * * *`, `every 15 minutes`, `after flights, weather`."""
    if isinstance(schedule, list):
        return "after " + ", ".join(asset.name.removeprefix("drawdown.") for asset in schedule)
    if isinstance(schedule, timedelta):
        return f"every {lasting(schedule)}"
    return str(schedule) if schedule is not None else "only by hand"
