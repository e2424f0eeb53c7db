"""`airflow:`: how Airflow runs the tasks of all pipelines, with overrides per pipeline."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from drawdown.spec.scheduling.schedule import ClockSchedule
from drawdown.values.duration import Duration, PositiveDuration
from drawdown.values.model import Line, NumberFromText, SpecModel

_Retries = Annotated[int, Field(ge=0, le=100), NumberFromText]
_Weight = Annotated[int, Field(ge=1, le=10_000), NumberFromText]


class OwnTasks(SpecModel):
    """``airflow:`` of a pipeline: its keys override the project's, in all its DAGs.

    All pipelines of a group must have the same values, or none.
    """

    pool: Line | None = None
    queue: Line | None = None
    priority_weight: _Weight | None = None
    retries: _Retries | None = None
    retry_delay: PositiveDuration | None = None
    execution_timeout: PositiveDuration | None = None
    task_timeout: PositiveDuration | None = None


class Airflow(SpecModel):
    """What the DAGs use: one shared pool, how tasks retry, when `drawdown__freshness` looks.

    ``execution_timeout`` is a try's of the Spark job, ``task_timeout`` a try's of any task beside it:
    preflight, audit, publish, decide, swap. ``pool`` is the job's.
    """

    pool: Line = "drawdown"
    queue: Line | None = None
    priority_weight: _Weight = 1
    retries: _Retries = 2
    retry_delay: PositiveDuration = Duration.parse("2 minutes")
    execution_timeout: PositiveDuration = Duration.parse("2 hours")
    task_timeout: PositiveDuration = Duration.parse("30 minutes")
    freshness_schedule: ClockSchedule = "*/10 * * * *"

    def instead(self, own: OwnTasks) -> Airflow:
        """Return the settings with a pipeline's overrides."""
        said = {key: getattr(own, key) for key in own.model_fields_set}
        return self.model_copy(update={key: value for key, value in said.items() if value is not None})
