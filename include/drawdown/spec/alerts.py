"""`alerts:`: of what, and where to, somebody is told when the state of a pipeline changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, get_args

from pydantic import Field

from drawdown.values.duration import Duration, PositiveDuration
from drawdown.values.model import Name, SpecModel

Alert = Literal["failing", "held", "stale", "lagging", "retention", "rebuild", "quarantine"]
ALERTS: tuple[Alert, ...] = get_args(Alert)

_When = Annotated[list[Alert], Field(max_length=len(ALERTS))]
_To = Annotated[list[Name], Field(max_length=100)]
_Rows = Annotated[int, Field(ge=1)]


class OwnAlerts(SpecModel):
    """``alerts:`` of a pipeline: its keys override the project's."""

    when: _When | None = None
    to: _To | None = None
    lagging_after: PositiveDuration | None = None
    retention_left: PositiveDuration | None = None
    quarantined_rows: _Rows | None = None


class Alerts(SpecModel):
    """``alerts:`` of project.yaml.

    ``to``: names of ``alert_targets:``, None: all of them. ``lagging_after``: how old the oldest unread may
    be, None: any age. ``retention_left``: for how long the broker must still keep what is unread.
    ``quarantined_rows``: how many rows a run may not set aside.
    """

    when: _When = Field(default_factory=lambda: list(ALERTS))
    to: _To | None = None
    lagging_after: PositiveDuration | None = None
    retention_left: PositiveDuration = Duration.parse("6 hours")
    quarantined_rows: _Rows = 100

    def instead(self, own: OwnAlerts) -> Alerts:
        """Return the settings with a pipeline's overrides."""
        said = {key: getattr(own, key) for key in own.model_fields_set}
        return self.model_copy(update={key: value for key, value in said.items() if value is not None})

    def targets(self, known: Iterable[str]) -> tuple[str, ...]:
        """Return the names of the targets, of those that project.yaml has."""
        return tuple(name for name in known if self.to is None or name in self.to)
