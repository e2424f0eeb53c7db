"""How many workers a run gets: the profile's number, or as many as the backlog needs, within bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING, Any

from drawdown.application.size import WHY, WORKERS
from drawdown.cost.run_time import RunTime, run_time, samples, throughput
from drawdown.metastore.records import Batch, MeasuredRun
from drawdown.spec import SizedCluster
from drawdown.values.duration import Duration
from drawdown.values.text import counted, lasting

if TYPE_CHECKING:
    from drawdown.application.plan import Plan
    from drawdown.spec import Pipeline
    from drawdown.spec.clusters.cluster import PerWorker, Sizing
    from drawdown.workspace import Workspace

_LEAST_RUNS = 5
"""Earlier runs that `within` needs: a choice within bounds may rest on less than a figure that is shown."""

_LOOK_BACK = timedelta(days=90)
_RUNS, _BATCHES = 100, 200


@dataclass(frozen=True)
class Waiting:
    """What waits for one pipeline, and what its earlier runs show.

    Attributes:
        backlog: of each streaming source, see plan.findings.Finding.
        rows: about how many these are; None when it is unknown.
        runs: earlier ones on the same profile, oldest first.
    """

    backlog: Mapping[str, Mapping[str, Any]]
    rows: int | None = None
    runs: Sequence[MeasuredRun] = ()


Backlogs = Iterable[Waiting]
"""One per pipeline."""


@dataclass(frozen=True)
class Size:
    """How many workers, and why, in words that follow "2 workers: "."""

    workers: int
    why: str

    def __str__(self) -> str:
        return f"{counted(self.workers, 'worker')}: {self.why}"

    @property
    def settings(self) -> dict[str, str]:
        """Return it as settings of the application, which the run records keep."""
        return {WORKERS: str(self.workers), WHY: self.why}


def workers_for(profile: SizedCluster, backlogs: Backlogs | None) -> Size:
    """Return how many workers the backlog of these pipelines needs.

    `within` asks the earlier runs; while these do not show enough, `each` decides, or `max` without it.

    Args:
        backlogs: None for a run that reads something else, such as a replay: its size is unknown too.
    """
    sizing = profile.workers
    if isinstance(sizing, int):
        return Size(sizing, "the profile says so")
    if backlogs is None:
        return Size(sizing.max, "`max`, because this does not read the backlog, so its size is unknown")
    waiting = list(backlogs)
    if sizing.within is None:
        return _by_amount(sizing, sizing.each, waiting)
    found = _by_time(profile, sizing, sizing.within, waiting)
    if isinstance(found, Size):
        return found
    other = _by_amount(sizing, sizing.each, waiting)
    return replace(other, why=f"{other.why} (`within` cannot decide: {found})")


def waiting_for(workspace: Workspace, pipeline: Pipeline, backlog: Mapping[str, Any]) -> Waiting:
    """Return a pipeline's backlog, with what its records show if its profile sizes by them."""
    profile = workspace.project.clusters[pipeline.cluster]
    timed = isinstance(profile, SizedCluster) and not isinstance(profile.workers, int)
    if not timed or profile.workers.within is None:  # type: ignore[union-attr]
        return Waiting(backlog)
    metastore = workspace.metastore
    checkpoint = metastore.active_checkpoint(pipeline.name)
    batches = metastore.newest_batches(pipeline.name, checkpoint.generation, _BATCHES) if checkpoint else ()
    since = metastore.now() - _LOOK_BACK
    runs = metastore.applications.of_pipeline(pipeline.name, since, _RUNS)
    own = [run for run in runs if run.cluster == pipeline.cluster]
    return Waiting(backlog, rows_of(backlog, batches), own)


def with_size(workspace: Workspace, pipeline: Pipeline, plan: Plan) -> Plan:
    """Return a plan that says which size its run would have; unchanged if the profile has no workers."""
    profile = workspace.project.clusters[pipeline.cluster]
    if not isinstance(profile, SizedCluster):
        return plan
    if not plan.waiting.work:
        return replace(plan, size="no workers: there is nothing to do, so no cluster is started")
    size = workers_for(profile, [waiting_for(workspace, pipeline, plan.waiting.backlog)])
    return replace(plan, size=str(size))


def rows_of(backlog: Mapping[str, Mapping[str, Any]], batches: Sequence[Batch]) -> int | None:
    """Return about how many rows wait: Kafka's offsets, and bytes of files by the bytes that a row had.

    Args:
        batches: earlier ones, which show the bytes of a row.
    """
    rows = [_rows_at(name, found, batches) for name, found in backlog.items()]
    return None if None in rows else round(sum(each for each in rows if each is not None))


def _rows_at(name: str, found: Mapping[str, Any], batches: Sequence[Batch]) -> float | None:
    for unit in ("offsets", "rows"):
        if unit in found:
            return _sum(found[unit])
    if "bytes" not in found:
        return None
    noted = [batch.by_source.get(name, {}) for batch in batches]
    read = [(each["read"], each["bytes"]) for each in noted if each.get("bytes")]
    rows, size = sum(each for each, _ in read), sum(each for _, each in read)
    if not found["bytes"]:
        return 0
    return found["bytes"] * rows / size if size else None


def _by_amount(sizing: Sizing, each: PerWorker | None, waiting: Sequence[Waiting]) -> Size:
    """Size by `each`: backlogs are added up per unit, and the unit that needs most workers decides.

    A source whose backlog has none of the units that the profile names gets `max`: its size is unknown.
    """
    if each is None:
        return Size(sizing.max, "`max`")
    amounts = each.amounts
    total = dict.fromkeys(amounts, 0)
    for name, found in (source for one in waiting for source in one.backlog.items()):
        counts = {unit: _sum(found[unit]) for unit in amounts if unit in found}
        if not counts:
            return Size(sizing.max, f"`max`, because what waits at {name} is not counted in {_and(amounts)}")
        for unit, size in counts.items():
            total[unit] += size
    needed = {unit: ceil(total[unit] / amount) for unit, amount in amounts.items()}
    unit = max(needed, key=lambda unit: needed[unit])
    workers = min(max(needed[unit], sizing.min), sizing.max)
    return Size(workers, f"{_waits(total[unit], unit)}, and `each` is {amounts[unit]:,} for one worker")


def _by_time(
    profile: SizedCluster, sizing: Sizing, within: Duration, waiting: Sequence[Waiting]
) -> Size | str:
    """Size by `within`: the fewest workers with which the earlier runs end in time; or why it is unknown."""
    busy = [one for one in waiting if one.rows != 0]
    if not busy:
        return Size(sizing.min, "no rows wait")
    times = [_time_of(profile, one) for one in busy]
    known = [each for each in times if isinstance(each, RunTime)]
    if len(known) < len(times):
        return next(each for each in times if isinstance(each, str))
    unknown = [name for one in busy if one.rows is None for name in one.backlog]
    if unknown:
        return f"how many rows wait at {_and(unknown)} is unknown"
    rows = [one.rows or 0 for one in busy]

    def takes(workers: int) -> float:
        cores = workers * profile.worker_cores
        return sum(each.seconds(n, cores, evenly=True) or 0 for each, n in zip(known, rows, strict=True))

    limit = within.delta.total_seconds()
    workers = next((n for n in range(sizing.min, sizing.max + 1) if takes(n) <= limit), sizing.max)
    said = f"about {_waits(sum(rows), 'rows')}, and by {counted(sum(e.runs for e in known), 'earlier run')}"
    why = f"{said} they take {_lasting(takes(workers))}"
    if any(each.is_one_size and workers * profile.worker_cores not in each.per_row for each in known):
        why += ", if workers share them evenly"
    if takes(workers) > limit:
        return Size(workers, f"{why}: `max` is too few for `within: {within}`")
    if workers > sizing.min:
        return Size(workers, f"{why}; {workers - 1} would take {_lasting(takes(workers - 1))}")
    return Size(workers, why)


def _time_of(profile: SizedCluster, one: Waiting) -> RunTime | str:
    found = samples(one.runs, profile)
    if len(found) < _LEAST_RUNS:
        return f"{len(found)} of {_LEAST_RUNS} earlier runs with rows on this profile needed"
    known = run_time(found, _LEAST_RUNS)
    return throughput(found) if isinstance(known, str) else known


def _waits(number: int, unit: str) -> str:
    return f"{counted(number, unit.removesuffix('s'))} {'waits' if number == 1 else 'wait'}"


def _lasting(seconds: float) -> str:
    return f"about {lasting(timedelta(seconds=ceil(seconds)))}"


def _and(names: Iterable[str]) -> str:
    return " and ".join(names)


def _sum(waiting: int | Mapping[str, int]) -> int:
    return sum(waiting.values()) if isinstance(waiting, Mapping) else int(waiting)
