"""The task `partitions`: tells Airflow which days or hours of event time are complete.

One is complete when the watermark has passed its end and every row before it is published. Airflow keeps an
event when the task that sends it succeeds, so the newest event of the asset says where the next one begins.
A watermark never goes back in a checkpoint, and what an event has told is not told again: late rows, replays
and rewinds start no second run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk.exceptions import AirflowSkipException

from drawdown.airflow.logins import look_up
from drawdown.airflow.schedules import asset_of_partitions
from drawdown.airflow.tasks.asset_events import AssetEvent, AssetEvents, newest_first
from drawdown.airflow.tasks.project_operators import PipelineOperator
from drawdown.airflow.tasks.task_failures import plainly
from drawdown.credentials import with_logins
from drawdown.publishing.settled import finished_until, settled_batch
from drawdown.spec import Project, load_pipeline, load_project
from drawdown.values.interval import EPOCH
from drawdown.values.text import counted, utc
from drawdown.workspace import Generation, Workspace

if TYPE_CHECKING:
    from airflow.sdk import Asset, Context

Unit = Literal["day", "hour"]

LENGTH: dict[Unit, timedelta] = {"day": timedelta(days=1), "hour": timedelta(hours=1)}
AT_MOST = 400
"""Partitions of one DAG run: Airflow writes one event for each. The next run tells the rest."""

_UNTIL = "closed_until"


@dataclass(frozen=True)
class Closed:
    """Consecutive partitions that are complete and that no event has told; empty when `first` is `until`.

    Attributes:
        first, until: the start of the first one, and the end of the last one.
        watermark: of the last published batch.
    """

    pipeline: str
    unit: Unit
    first: datetime
    until: datetime
    watermark: datetime

    def __bool__(self) -> bool:
        return self.first < self.until

    @property
    def asset(self) -> Asset:
        return asset_of_partitions(self.pipeline, self.unit)

    @property
    def keys(self) -> list[str]:
        """Return the partitions' keys, their start in UTC as Airflow's CronPartitionTimetable writes it."""
        return [f"{start:%Y-%m-%dT%H:%M:%S}" for start in self._starts()]

    def _starts(self) -> Iterator[datetime]:
        start = self.first
        while start < self.until:
            yield start
            start += LENGTH[self.unit]

    def as_event(self) -> dict[str, Any]:
        """Return the content that the events of all these partitions share."""
        return {
            "pipeline": self.pipeline,
            "partitions": [self.keys[0], self.keys[-1]],
            _UNTIL: self.until.isoformat(),
            "watermark": self.watermark.isoformat(),
        }

    def __str__(self) -> str:
        return f"{counted(len(self.keys), f'complete {self.unit}')} until {utc(self.until)}"


def newly_closed(generation: Generation, unit: Unit, events: AssetEvents) -> Closed | None:
    """Return the partitions that were closed since the newest event; None when there are none.

    The first event has the newest one alone, as the first run of an Airflow DAG without catchup.
    """
    last = settled_batch(generation)
    watermark = EPOCH if last is None else finished_until(generation, last.batch_id)
    if watermark <= EPOCH:
        return None
    end = _start_of(unit, watermark)
    told = _told(newest_first(events))
    first = end - LENGTH[unit] if told is None else told
    closed = Closed(
        generation.pipeline.name, unit, first, min(end, first + AT_MOST * LENGTH[unit]), watermark
    )
    return closed or None


def _start_of(unit: Unit, time: datetime) -> datetime:
    hour = time.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return hour.replace(hour=0) if unit == "day" else hour


def _told(events: Iterable[AssetEvent]) -> datetime | None:
    """Return until when partitions were told; events of somebody else are passed over."""
    ends = (event.extra[_UNTIL] for event in events if event.extra and _UNTIL in event.extra)
    return next((datetime.fromisoformat(str(end)) for end in ends), None)


class PartitionsOperator(PipelineOperator):
    """Sends an event with a partition key for each day or hour that is newly complete; else it is skipped.

    Its inlet and its outlet must be `asset_of_partitions`. Its trigger rule is NONE_FAILED: a decision about
    a held slice may have completed one, although `publish` has nothing to report.
    """

    @plainly
    def execute(self, context: Context) -> dict[str, Any]:
        closed = untold_partitions(load_project(Path(self.project_root)), self.pipeline, context)
        if closed is None:
            raise AirflowSkipException(f"{self.pipeline}: nothing more is complete")
        event, outlet = closed.as_event(), context["outlet_events"][closed.asset]
        outlet.add_partitions(closed.keys)
        outlet.extra.update(event)
        self.log.info("%s: %s", self.pipeline, closed)
        return event


def untold_partitions(project: Project, name: str, context: Context) -> Closed | None:
    """Return what is complete of a pipeline and not told; its asset must be an inlet of the task."""
    pipeline = load_pipeline(project, name)
    if pipeline.partitions is None:
        return None
    events = context["inlet_events"][asset_of_partitions(name, pipeline.partitions)]
    # The watermark is in the checkpoint, which may be in a bucket.
    project = with_logins(project, look_up(project, [pipeline]))
    with Workspace.open(project) as workspace:
        return newly_closed(Generation.of(workspace, pipeline), pipeline.partitions, events)
