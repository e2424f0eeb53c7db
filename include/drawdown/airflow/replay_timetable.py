"""The timetable of a replay DAG: whole event-time intervals for backfills, and no scheduled runs."""

from __future__ import annotations

from datetime import timedelta

from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.interval import DeltaDataIntervalTimetable
from pendulum import DateTime, duration, instance

from drawdown.values.moments import clamped


class ReplayTimetable(DeltaDataIntervalTimetable):
    """Intervals of one length that begin at whole multiples of it since 1970 UTC.

    A backfill requests runs with `catchup` on, whatever the DAG says; the scheduler follows the DAG
    (SerializedDAG.iter_dagrun_infos_between and DagModel.calculate_dagrun_date_fields, Airflow 3.3). With
    catchup off, only backfills and people create runs.
    """

    def __init__(self, delta: timedelta) -> None:
        super().__init__(delta)
        self.length = delta

    @property
    def summary(self) -> str:
        """Return what the UI shows in place of a schedule."""
        length = duration(days=self.length.days, seconds=self.length.seconds)
        return f"by backfill, {length.in_words()} each"

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        if not restriction.catchup:
            return None
        return super().next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval, restriction=restriction
        )

    def infer_manual_data_interval(self, run_after: DateTime) -> DataInterval:
        """Return the interval that contains the logical date of a manual run.

        For a date near an end of the calendar, where there is no such interval, it is another one: the run
        then says that it cannot be replayed, and the api-server, which asks for it, does not fail.
        """
        start = self._whole(instance(clamped(run_after)))
        return DataInterval(start=start, end=start + self.length)

    def _align_to_next(self, current: DateTime) -> DateTime:
        before = self._whole(current)
        return before if before == current else before + self.length

    def _whole(self, at: DateTime) -> DateTime:
        return self._round(at, at)


def timetable_is_known() -> bool:
    """Whether this Airflow has the plugin; without it, Airflow cannot store a DAG with this timetable."""
    from airflow.plugins_manager import get_timetables_plugins

    return f"{ReplayTimetable.__module__}.{ReplayTimetable.__qualname__}" in get_timetables_plugins()
