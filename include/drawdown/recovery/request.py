"""Runs a recovery under the pipeline's lease and records who asked for it, and why."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from drawdown.errors import DrawdownError
from drawdown.metastore.lease_heartbeat import LeaseHeartbeat
from drawdown.metastore.records import Lease, Run
from drawdown.publishing.clean_up import clean_up_changes
from drawdown.recovery.first_names import refuse_half_renamed
from drawdown.workspace import Generation, Workspace

_Done = TypeVar("_Done")


@dataclass(frozen=True)
class RecoveryRequest:
    """Who asks for a recovery and why; `kind` is the command's name."""

    kind: str
    run_id: str
    holder: str
    by: str
    why: str


def as_run(
    generation: Generation,
    request: RecoveryRequest,
    work: Callable[[Callable[[], Lease]], _Done],
    summary: Callable[[_Done], str],
) -> _Done:
    """Do the work under the lease; it receives a function that returns the current lease or raises if it was
    lost.

    Args:
        summary: the sentence about what was done that the record keeps.

    Raises:
        BusyError: a run holds the lease, or a replay commits at this moment.
        RefusedError: ``rename.not-done``: the files are half those of another name.
        DrawdownError: what the work raises; the record says so.
    """
    refuse_half_renamed(generation)
    metastore, ttl = generation.metastore, generation.project.lease_ttl.delta
    name = generation.pipeline.name
    # Neither a drain nor the commit of a replay may fall between its steps.
    turn = metastore.acquire(f"{name}#replay", request.holder, request.run_id, ttl)
    with LeaseHeartbeat(metastore, turn, ttl) as replays, ExitStack() as held:
        lease = metastore.acquire(name, request.holder, request.run_id, ttl)
        heartbeat = held.enter_context(LeaseHeartbeat(metastore, lease, ttl))
        origin = {"by": request.by, "why": request.why}
        record = Run(request.run_id, name, kind=request.kind, holder=request.holder, origin=origin)
        metastore.start_run(record)

        def current() -> Lease:
            replays.check()
            heartbeat.check()
            return heartbeat.lease

        try:
            for each in (turn, lease):
                clean_up_changes(Workspace(generation.project, metastore), each, generation.pipeline)
            done = work(current)
        except DrawdownError as error:
            metastore.finish_run(request.run_id, "failed", error=error.as_dict())
            raise
        metastore.finish_run(
            request.run_id, "succeeded", generation=generation.number, stop_reason=summary(done)
        )
    return done


TIME = "%Y%m%dT%H%M%S.%fZ"


def folder_name() -> str:
    """Return a folder name for now that sorts by time: 20260131T093000.123456Z."""
    return datetime.now(UTC).strftime(TIME)


def time_of(folder: str) -> datetime:
    """Return when a folder with this name was made."""
    return datetime.strptime(folder, TIME).replace(tzinfo=UTC)
