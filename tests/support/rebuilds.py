"""The pipeline that rebuilds are tested on: sums per hour, then per hour and key, which state cannot take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from drawdown.application import SparkApplication
from drawdown.metastore import this_process
from drawdown.metastore.records import Run
from drawdown.plan.version_in_use import wanted
from drawdown.rebuild.publish import RebuildDecision, end_rebuild
from drawdown.workspace import Workspace
from tests.support.replays import REPLAYED
from tests.support.sandbox import Sandbox

NAME = "hourly"
SPEC = REPLAYED.replace("replay: {interval: 1 day}\n", "")
UPDATE = SPEC.replace("time_column: hour", "mode: update, keys: [hour]")
SUMS = "SELECT window.start AS hour, sum(n) AS total FROM events GROUP BY window(at, '1 hour')"
BY_KEY = "SELECT window.start AS hour, sum(n) AS total, k FROM events GROUP BY window(at, '1 hour'), k"
_EVENTS = "at TIMESTAMP, k STRING, n INT"


def event(at: str, n: int = 1, k: str = "a") -> dict[str, object]:
    """`at` as ``02T06:30``, in January 2024."""
    return {"at": f"2024-01-{at}:00Z", "k": k, "n": n}


# What arrives, one after the other: windows of an earlier file close with the next.
FIRST = [event("02T06:10", 1), event("02T06:20", 2, "b"), event("02T07:30", 4)]
SECOND = [event("02T08:10", 8, "b"), event("02T09:10", 16)]
THIRD = [event("02T09:50", 32, "b"), event("02T11:10", 64)]
FOURTH = [event("02T11:50", 128, "b"), event("02T13:10", 256)]


class Hourly(Sandbox):
    """A project with this pipeline, its events and its rebuilds."""

    def live_version(self, spec: str = SPEC, quality: str = "rules: []") -> None:
        """Sums per hour."""
        self.pipeline(
            NAME, spec, events_ddl=_EVENTS, hourly_ddl="hour TIMESTAMP, total BIGINT",
            transform_sql=SUMS, quality_yaml=quality,
        )  # fmt: skip

    def next_version(self, spec: str = SPEC, folder: str = f"{NAME}/next") -> None:
        """Sums per hour and key; in the folder that a rebuild looks into first."""
        target = self.root / "include/pipelines" / folder
        target.mkdir(exist_ok=True)
        files = {"pipeline.yaml": spec, "events.ddl": _EVENTS, "transform.sql": BY_KEY}
        for name, text in {**files, "hourly.ddl": "hour TIMESTAMP, total BIGINT, k STRING"}.items():
            (target / name).write_text(text)

    def arrive(self, number: int, events: Iterable[dict[str, object]]) -> None:
        self.land_json(f"landing/events/{number}.json", events, mtime=1_700_000_000 + number)

    def arrive_and_run(self, number: int, events: Iterable[dict[str, object]]) -> Run:
        self.arrive(number, events)
        return self.run(NAME)

    def rebuilt(self) -> Run:
        """`drawdown rebuild start`; raises its error."""
        with self.metastore() as metastore:
            application = SparkApplication(Workspace(self.project, metastore), session=self.spark)
            report = application.rebuild(wanted(self.project, NAME))
        if report.error is not None:
            raise report.error
        assert report.run is not None
        return report.run

    def end(self, choice: Any, number: int = 1, about: str | None = None) -> Run:
        """`drawdown rebuild approve`, `discard` or `rollback`."""
        with self.metastore() as metastore:
            asked = RebuildDecision(
                choice, f"{choice}-{number}", this_process(), "ada", "a test", about=about
            )
            return end_rebuild(Workspace(self.project, metastore), wanted(self.project, NAME), asked)

    def comparison(self) -> dict[str, Any]:
        with self.metastore() as metastore:
            return dict(metastore.generations(NAME)[-1].rebuild["comparison"])

    def rows(self) -> Counter[tuple[Any, ...]]:
        """What readers of the table see: day and hour, and what follows."""
        return Counter((f"{row[0]:%dT%H}", *row[1:]) for row in self.delta("tables/hourly"))


def sums(events: Iterable[dict[str, Any]], until: str, *, by_key: bool = True) -> Counter[tuple[Any, ...]]:
    """What one computation over all events makes of them: of windows that end by `until`."""
    found: Counter[tuple[Any, ...]] = Counter()
    for each in events:
        hour = each["at"][8:13]
        if hour < until:
            found[(hour, each["k"]) if by_key else (hour,)] += each["n"]
    return Counter((hour, total, *rest) for (hour, *rest), total in found.items())
