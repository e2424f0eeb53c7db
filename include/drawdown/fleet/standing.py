"""How a pipeline stands: one word, why, and the command to type next. From the metastore's records alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Literal, NamedTuple, get_args

from drawdown.error_registry import error_entries
from drawdown.errors import RefusedError, SpecError
from drawdown.fleet.freshness import counts_from, is_late
from drawdown.held.deadlines import Term, terms
from drawdown.metastore.records import BatchStatus, Lease, Run
from drawdown.spec import Pipeline, load_pipeline
from drawdown.values.text import counted, utc
from drawdown.workspace import Workspace

State = Literal[
    "failed", "refused", "retention at risk", "held", "stale", "lagging", "rebuild waiting", "waiting",
    "late flood", "quarantine growing", "never ran", "running", "ok",
]  # fmt: skip
WORST_FIRST: tuple[State, ...] = get_args(State)

RECENT = 12
"""Runs that are looked at, newest first."""
_UNSETTLED: tuple[BatchStatus, ...] = ("staged", "committed", "passed")


class Finding(NamedTuple):
    """`why` and the command `do` are empty where all is well."""

    state: State
    why: str = ""
    do: str = ""


Basis = Literal["spec", "run", "slice", "batches", "first"]
"""What a finding rests on: the spec, the newest run, a held slice, batches that wait, no run at all."""
Holder = Literal["none", "active", "dead"]
"""Of a pipeline's lease: nobody, a run that goes on, or one that died without a word."""


def worst(
    pipeline: str,
    lasting: Mapping[Basis, Finding],
    signs: Mapping[State, Finding],
    holder: Holder,
    who: str = "",
) -> Finding:
    """Return the worst that can be said of a pipeline.

    Args:
        lasting: what holds until something new is recorded; the rest changes with time.
        signs: what the clock and the recorded figures say, by state.
        who: holds the lease, and since when.
    """
    if "spec" in lasting:
        return lasting["spec"]
    if holder == "dead":
        return died(pipeline)
    if "run" in lasting and holder != "active":
        return lasting["run"]
    # What a run that goes on may end by itself is not said while it does.
    candidates = (
        signs.get("retention at risk"),
        lasting.get("slice"),
        *((signs.get("stale"), signs.get("lagging")) if holder != "active" else ()),
        signs.get("rebuild waiting"),
        Finding("running", who, f"drawdown logs {pipeline} --follow") if holder == "active" else None,
        lasting.get("batches"),
        signs.get("late flood"),
        signs.get("quarantine growing"),
        lasting.get("first"),
    )
    return next((found for found in candidates if found is not None), Finding("ok"))


def stale(pipeline: str) -> Finding:
    """Return what is said where `freshness:` is broken."""
    return Finding("stale", "nothing was published within `freshness:`", f"drawdown run {pipeline}")


def held_by(holder: str, since: datetime) -> str:
    """Return who holds a lease, in words."""
    return f"{holder} has held its checkpoint since {utc(since)}"


def died(pipeline: str) -> Finding:
    """Return what is said of a run whose process ended without closing its record."""
    why = "the run's process ended without a word; the next run completes its work"
    return Finding("failed", why, f"drawdown run {pipeline}")


@dataclass(frozen=True)
class Standing:
    """What is recorded of one pipeline.

    Attributes:
        spec: as its folder has it now, or why it cannot be read.
        runs: the last ones that bring output forward, newest first, without their progress.
        lease: of the run that holds its checkpoint now.
        unsettled: batches that are neither published nor held.
        held: slices that wait for a decision.
        published_at: when rows became visible last; None: never.
        since: from when on `freshness:` counts, see `counts_from`; None when nothing is due.
        promise: `freshness:`.
        now: by the metastore's clock: when all this was read.
        signs: what recorded figures say, by state (drawdown.observe.signs).
    """

    pipeline: str
    spec: Pipeline | SpecError
    runs: Sequence[Run]
    lease: Lease | None
    unsettled: int
    held: Sequence[Term]
    published_at: datetime | None
    since: datetime | None
    promise: timedelta | None
    now: datetime
    signs: Mapping[State, Finding] = field(default_factory=dict)

    @property
    def broken(self) -> SpecError | None:
        """Why its spec cannot be read."""
        return self.spec if isinstance(self.spec, SpecError) else None

    @property
    def age(self) -> timedelta | None:
        """For how long readers have waited for a publish; None when nothing is due."""
        return None if self.since is None else self.now - self.since

    @property
    def is_late(self) -> bool:
        """Whether `freshness:` is broken."""
        return is_late(self.age, self.promise)

    @cached_property
    def finding(self) -> Finding:
        """The worst that can be said."""
        signs = dict(self.signs)
        if self.is_late:
            signs["stale"] = stale(self.pipeline)
        if self.lease is None:
            return worst(self.pipeline, self.lasting, signs, "none")
        who = held_by(self.lease.holder, self.lease.acquired_at)
        return worst(self.pipeline, self.lasting, signs, "active", who)

    @cached_property
    def lasting(self) -> dict[Basis, Finding]:
        """What holds until something new is recorded."""
        return dict(self._lasting())

    def _lasting(self) -> Iterator[tuple[Basis, Finding]]:
        name, last = self.pipeline, self.runs[0] if self.runs else None
        if self.broken is not None:
            why = f"{self.broken.id}: {_first(self.broken.what)}"
            yield "spec", Finding("refused", why, f"drawdown validate {name}")
        if last is not None and not (self.held and _by_audit(last)):
            yield from (("run", each) for each in _of_run(last))
        if self.held:
            why = f"{self.held[0].text}{'; further slices wait' if len(self.held) > 1 else ''}"
            yield "slice", Finding("held", why, self.held[0].do)
        if self.unsettled:
            why = f"{counted(self.unsettled, 'batch')} not published yet, and no run is active"
            yield "batches", Finding("waiting", why, f"drawdown run {name}")
        if last is None:
            yield "first", Finding("never ran", "", f"drawdown run {name}")


def standings(workspace: Workspace, names: Sequence[str]) -> list[Standing]:
    """Of these pipelines, worst first, then by name."""
    return worst_first(standing(workspace, name) for name in names)


def worst_first(found: Iterable[Standing]) -> list[Standing]:
    """Return these in their order, then by name."""
    return sorted(found, key=lambda each: (WORST_FIRST.index(each.finding.state), each.pipeline))


def standing(workspace: Workspace, name: str, recent: int = RECENT) -> Standing:
    """Of one pipeline, with so many runs."""
    metastore, spec = workspace.metastore, _spec(workspace, name)
    checkpoint = metastore.active_checkpoint(name)
    return Standing(
        name,
        spec=spec,
        runs=metastore.recent_runs(name, recent),
        lease=metastore.holder_of(name),
        unsettled=0
        if checkpoint is None
        else len(metastore.batches(name, checkpoint.generation, _UNSETTLED)),
        held=terms(workspace, name),
        published_at=metastore.published_at(name),
        since=counts_from(metastore, spec) if isinstance(spec, Pipeline) else metastore.last_published(name),
        promise=spec.freshness.delta if isinstance(spec, Pipeline) and spec.freshness else None,
        now=metastore.now(),
    )


def _spec(workspace: Workspace, name: str) -> Pipeline | SpecError:
    try:
        return load_pipeline(workspace.project, name)
    except SpecError as error:
        return error


def _of_run(run: Run) -> Iterator[Finding]:
    """What the newest run leaves to do."""
    if run.state in ("running", "crashed"):
        yield died(run.pipeline)
    elif run.state == "failed":
        error = run.error or {"id": "unknown", "what": "no reason was recorded"}
        yield Finding(
            "refused" if _is_refusal(error["id"]) else "failed",
            f"{error['id']}: {_first(error['what'])}",
            f"drawdown logs {run.pipeline} {run.run_id}",
        )


def _by_audit(run: Run) -> bool:
    return run.state == "succeeded" or run.verdict in ("fail", "error")


def _is_refusal(error_id: str) -> bool:
    """Whether nothing was touched, so that a change of the spec, or a decision, is what helps."""
    entry = error_entries().get(error_id)
    return entry is not None and set(entry.exit_codes) <= {SpecError.exit_code, RefusedError.exit_code}


def _first(text: str) -> str:
    return text.splitlines()[0] if text else ""
