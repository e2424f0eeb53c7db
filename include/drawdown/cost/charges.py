"""Computes what each run is charged: its recorded share, or as much as is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from drawdown.cost.bill import Bill, bill_of
from drawdown.metastore.application_shares import extra_us, usages
from drawdown.metastore.columns import microseconds
from drawdown.metastore.records import ApplicationRecord, RunUsage

NO_RUN = "(no run)"
"""Stands in for the pipeline's name of an application without a run: another one held the lease."""

_IN_APPLICATIONS = frozenset({"drain", "replay", "rebuild", "watch", "quarantine-replay"})
"""Kinds of runs that need Spark; others, for example a release, run where they are requested."""


@dataclass(frozen=True)
class Charge:
    """One run, or an application without one.

    Attributes:
        started_at: of the run's application, or of the run itself if unknown.
        usage: as `Run.usage`; None of a run that predates cost tracking.
        whole: whether the application has ended.
        work: whether it is a successful drain with work.
    """

    pipeline: str
    application: str | None
    started_at: datetime
    rows: int
    usage: Mapping[str, Any] | None
    whole: bool = True
    work: bool = False

    @property
    def bill(self) -> Bill:
        if self.usage is None:
            return Bill(unknown=1)
        bill = bill_of(self.usage, self.rows)
        return bill if self.pipeline != NO_RUN else replace(bill, runs=0)


def charges(applications: Iterable[ApplicationRecord], runs: Iterable[RunUsage]) -> Iterator[Charge]:
    """Yield the charges of these applications, each microsecond once, and the runs of unknown cost."""
    by_application: dict[str | None, list[RunUsage]] = defaultdict(list)
    for run in runs:
        by_application[run.application].append(run)
    for run in by_application[None]:
        if run.kind in _IN_APPLICATIONS:
            yield Charge(run.pipeline, None, run.started_at, run.rows, None)
    for application in applications:
        yield from _of(application, by_application[application.application_id])


def _of(application: ApplicationRecord, runs: Sequence[RunUsage]) -> Iterator[Charge]:
    whole = application.ended_at is not None
    known = {run.run_id: run.usage for run in runs if run.usage is not None}
    if len(known) < len(runs):
        spans = {run.run_id: (run.started_at, run.ended_at) for run in runs}
        known = usages(application, application.ended_at or application.seen_at, spans)
    for run in runs:
        usage = known[run.run_id]
        work = whole and run.kind == "drain" and run.state == "succeeded" and usage["start_us"] is not None
        yield Charge(
            run.pipeline, application.application_id, application.started_at, run.rows, usage, whole, work
        )
    if not runs:
        yield Charge(
            NO_RUN, application.application_id, application.started_at, 0, _of_nobody(application), whole
        )


def _of_nobody(application: ApplicationRecord) -> dict[str, Any]:
    end = application.ended_at or application.seen_at
    us = microseconds(end) - microseconds(application.started_at)
    return {
        "us": us,
        "idle_us": us,
        "cpu_us": application.cpu_us,
        "extra_us": extra_us(application.price, us),
        "cores": application.cores,
        "memory": application.memory,
        "peak": application.peak_bytes,
        "start_us": application.start_us,
        "price": application.price,
    }
