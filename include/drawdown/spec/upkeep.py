"""project.yaml, `upkeep:`: when what runs leave behind is tidied up, and how long it stays before that."""

from __future__ import annotations

from drawdown.spec.schedule import ClockSchedule
from drawdown.values.duration import Duration, PositiveDuration
from drawdown.values.model import SpecModel


class Upkeep(SpecModel):
    """``vacuum``: how long files stay that no version of a table names any more; ``records``: those of runs.

    ``schedule`` is of the DAG ``drawdown__upkeep``; none: only by hand.
    """

    schedule: ClockSchedule = "@daily"
    vacuum: PositiveDuration = Duration.parse("7 days")
    records: PositiveDuration = Duration.parse("90 days")
