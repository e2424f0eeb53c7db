"""The life of a cluster that commands start: what may become of its record, and in which order.

    starting ──up──▶ up ──its run has ended, another try has begun, or its deadline has come──▶ ending
       └──── `up` failed, or its starter is gone ──────────────────────────────────────────────▶ ending
    ending ──`down` ended well──▶ no record         ending ──`down` failed──▶ unknown ──`down` again──▶ …

Each function is one step between two transactions, for the guard, the tasks and `end_overdue` alike. A
record is there before its machines are, and goes only after a `down` of this instance that ended well, or
when a person says that they are gone. Nothing changes `deadline`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from drawdown.errors import DrawdownError
from drawdown.fleet.started_clusters import LATE
from drawdown.metastore.operations.clusters import Transition
from drawdown.metastore.records import StartedCluster

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=30), timedelta(minutes=15)
"""Between a `down` that failed and the next: doubled each time, up to the longest."""

_LIVE = ("starting", "up")


class Downs(Protocol):
    """Calls `down` of one cluster."""

    @property
    def down_within(self) -> timedelta: ...

    def down(self) -> None:
        """Raise a DrawdownError unless `down` ended well."""


class ClusterStore(Protocol):
    """The operations on records that a life needs: metastore.clusters, or a guard's own, which reconnects."""

    def change(self, instance: str, transition: Transition) -> StartedCluster | None: ...


def pause_after(tries: int) -> timedelta:
    """Return how long nobody calls `down` again after so many calls."""
    return min(FIRST_PAUSE * (1 << max(0, min(tries - 1, 16))), LONGEST_PAUSE)


def is_due(cluster: StartedCluster, now: datetime, late: timedelta = LATE) -> bool:
    """Whether `down` is to be called by whoever sees this.

    Args:
        late: for how long past its deadline the caller leaves a cluster to its guard.
    """
    if cluster.state in _LIVE:
        return now >= cluster.deadline + late
    return cluster.next_try_at is None or now >= cluster.next_try_at


def to_end(cluster: StartedCluster, now: datetime) -> StartedCluster:
    """No run needs it any more: its guard ends it, or whoever sees it."""
    return replace(cluster, state="ending", next_try_at=now) if cluster.state in _LIVE else cluster


def came_up(answer: dict[str, object]) -> Transition:
    """`up` has answered; nothing changes when the cluster is to end meanwhile."""

    def up(cluster: StartedCluster, now: datetime) -> StartedCluster:
        return replace(cluster, state="up", answer=answer) if cluster.state == "starting" else cluster

    return up


def ending(
    store: ClusterStore,
    cluster: StartedCluster,
    downs: Downs,
    *,
    only_if_due: bool = False,
    up_has_ended: bool = False,
) -> Iterator[bool]:
    """Call `down` once and record how it ended, with a step between any two effects that last.

    Whoever is killed in the middle leaves a record that is due again, when this call must have ended. No step
    has to wait.

    Args:
        only_if_due: do nothing if another has just called it, or is calling it now.
        up_has_ended: by the word of the process that called `up`.

    Raises:
        MachineError: ``cluster.down-failed``.
        SpecError: ``cluster.command``.
    """
    if not _begins(store, cluster, downs.down_within, only_if_due=only_if_due):
        return
    yield False
    try:
        downs.down()
    except DrawdownError as error:
        yield False
        store.change(cluster.instance, _failed(error.what))
        raise
    yield False
    store.change(cluster.instance, _succeeded(up_has_ended=up_has_ended))


def end(
    store: ClusterStore,
    cluster: StartedCluster,
    downs: Downs,
    *,
    only_if_due: bool = False,
    up_has_ended: bool = False,
) -> None:
    """Take all steps of `ending`."""
    for _ in ending(store, cluster, downs, only_if_due=only_if_due, up_has_ended=up_has_ended):
        pass


def _begins(store: ClusterStore, cluster: StartedCluster, within: timedelta, *, only_if_due: bool) -> bool:
    begun = False

    def begins(found: StartedCluster, now: datetime) -> StartedCluster:
        nonlocal begun
        if only_if_due and not is_due(found, now):
            return found
        begun, tries = True, found.tries + 1
        # It stays red until a call has ended well.
        state = found.state if found.state == "unknown" else "ending"
        return replace(found, state=state, tries=tries, next_try_at=now + within + pause_after(tries))

    store.change(cluster.instance, begins)
    return begun


def _failed(why: str) -> Transition:
    def failed(cluster: StartedCluster, now: datetime) -> StartedCluster:
        again = now + pause_after(cluster.tries)
        return replace(cluster, state="unknown", next_try_at=again, last_error=why)

    return failed


def _succeeded(*, up_has_ended: bool) -> Transition:
    def succeeded(cluster: StartedCluster, now: datetime) -> StartedCluster | None:
        if up_has_ended or cluster.answer is not None or now >= cluster.up_by:
            return None
        # `up` may be under way on another machine, and start something after this `down`.
        return replace(cluster, state="ending", next_try_at=cluster.up_by)

    return succeeded
