"""`retention:` of project.yaml and pipeline.yaml: how long copies of rows stay that no run asks for."""

from __future__ import annotations

from drawdown.values.duration import PositiveDuration
from drawdown.values.model import SpecModel


class RowRetention(SpecModel):
    """What `drawdown upkeep` deletes once it is older; without a key it stays.

    ``quarantine``: rows of the quarantine that were replayed or dropped, and copies of late ones;
    ``quarantine_open``: rows that nobody has decided about, which are nowhere else; ``verdicts``: values of
    rows in verdicts and in the errors of runs, whose outcomes stay.
    """

    quarantine: PositiveDuration | None = None
    quarantine_open: PositiveDuration | None = None
    verdicts: PositiveDuration | None = None
