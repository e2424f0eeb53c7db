"""project.yaml, `upkeep:`: when what runs leave behind is tidied up, and how long it stays before that."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from drawdown.spec.duration import Duration, PositiveDuration
from drawdown.spec.model import SpecModel, problem
from drawdown.spec.schedule import checked_schedule


def _by_the_clock(value: object) -> str | None:
    schedule = checked_schedule(value)
    if isinstance(schedule, list):
        raise problem(
            "wrong-schedule", "upkeep is of all pipelines, after none of them", do='write cron or "@daily"'
        )
    return schedule


class Upkeep(SpecModel):
    """``vacuum``: how long files stay that no version of a table names any more; ``records``: those of runs.

    ``schedule`` is of the DAG ``drawdown__upkeep``; none: only by hand.
    """

    schedule: Annotated[str | None, BeforeValidator(_by_the_clock)] = "@daily"
    vacuum: PositiveDuration = Duration.parse("7 days")
    records: PositiveDuration = Duration.parse("90 days")
