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


def live_version(sandbox: Sandbox, spec: str = SPEC, quality: str = "rules: []") -> None:
    """Sums per hour."""
    sandbox.pipeline(
        NAME, spec, events_ddl=_EVENTS, hourly_ddl="hour TIMESTAMP, total BIGINT",
        transform_sql=SUMS, quality_yaml=quality,
    )  # fmt: skip


def next_version(sandbox: Sandbox, spec: str = SPEC, folder: str = f"{NAME}/next") -> None:
    """Sums per hour and key; in the folder that a rebuild looks into first."""
    target = sandbox.root / "include/pipelines" / folder
    target.mkdir(exist_ok=True)
    files = {"pipeline.yaml": spec, "events.ddl": _EVENTS, "transform.sql": BY_KEY}
    for name, text in {**files, "hourly.ddl": "hour TIMESTAMP, total BIGINT, k STRING"}.items():
        (target / name).write_text(text)


def event(at: str, n: int = 1, k: str = "a") -> dict[str, object]:
    """`at` as ``02T06:30``, in January 2024."""
    return {"at": f"2024-01-{at}:00Z", "k": k, "n": n}


def land(sandbox: Sandbox, number: int, events: Iterable[dict[str, object]]) -> None:
    sandbox.land_json(f"landing/events/{number}.json", events, mtime=1_700_000_000 + number)


def rebuilt(sandbox: Sandbox) -> Run:
    """`drawdown rebuild start`; raises its error."""
    with sandbox.metastore() as metastore:
        application = SparkApplication(Workspace(sandbox.project, metastore), session=sandbox.spark)
        report = application.rebuild(wanted(sandbox.project, NAME))
    if report.error is not None:
        raise report.error
    assert report.run is not None
    return report.run


def end(sandbox: Sandbox, choice: Any, number: int = 1, about: str | None = None) -> Run:
    """`drawdown rebuild approve`, `discard` or `rollback`."""
    with sandbox.metastore() as metastore:
        asked = RebuildDecision(choice, f"{choice}-{number}", this_process(), "ada", "a test", about=about)
        return end_rebuild(Workspace(sandbox.project, metastore), wanted(sandbox.project, NAME), asked)


def comparison(sandbox: Sandbox) -> dict[str, Any]:
    with sandbox.metastore() as metastore:
        return dict(metastore.generations(NAME)[-1].rebuild["comparison"])


def rows(sandbox: Sandbox) -> Counter[tuple[Any, ...]]:
    """What readers of the table see: day and hour, and what follows."""
    return Counter((f"{row[0]:%dT%H}", *row[1:]) for row in sandbox.delta("tables/hourly"))


def sums(events: Iterable[dict[str, Any]], until: str, *, by_key: bool = True) -> Counter[tuple[Any, ...]]:
    """What one computation over all events makes of them: of windows that end by `until`."""
    found: Counter[tuple[Any, ...]] = Counter()
    for each in events:
        hour = each["at"][8:13]
        if hour < until:
            found[(hour, each["k"]) if by_key else (hour,)] += each["n"]
    return Counter((hour, total, *rest) for (hour, *rest), total in found.items())
