"""`upkeep:` and `retention:`: when Drawdown tidies up, and how long files, records and rows stay."""

from __future__ import annotations

from drawdown.spec.scheduling.schedule import ClockSchedule
from drawdown.values.duration import Duration, PositiveDuration
from drawdown.values.model import SpecModel


class Upkeep(SpecModel):
    """``vacuum``: how long files are kept that no table version names any more; ``records``: how long run
    records are kept.

    ``schedule`` is that of the DAG ``drawdown__upkeep``; without it, upkeep runs only by hand.
    """

    schedule: ClockSchedule = "@daily"
    vacuum: PositiveDuration = Duration.parse("7 days")
    records: PositiveDuration = Duration.parse("90 days")


class RowRetention(SpecModel):
    """`retention:` of project.yaml and pipeline.yaml: `drawdown upkeep` deletes rows that are older.

    Without a key, its rows are kept forever. ``quarantine``: rows that were replayed or dropped, and copies
    of late ones; ``quarantine_open``: undecided rows, which exist nowhere else; ``verdicts``: values of rows
    in verdicts and in the errors of runs, whose outcomes stay.
    """

    quarantine: PositiveDuration | None = None
    quarantine_open: PositiveDuration | None = None
    verdicts: PositiveDuration | None = None
