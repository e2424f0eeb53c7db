"""Run records of drains that ended before Spark was needed."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from drawdown.errors import DrawdownError
from drawdown.metastore import Metastore, this_process
from drawdown.metastore.records import Run

NOTHING_NEW = "nothing new"


def new_run_id() -> str:
    """Return an id that sorts by time, to the millisecond: 20260131T093000250-1a2b3c4d."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03}-{uuid.uuid4().hex[:8]}"


def note_unstarted(
    metastore: Metastore,
    pipeline: str,
    origin: Mapping[str, Any],
    application: str | None = None,
    error: DrawdownError | None = None,
) -> str:
    """Keep that a drain was asked for and ended at once: with an error, or because nothing was new.

    Returns:
        the id of its run.
    """
    run_id = new_run_id()
    metastore.start_run(
        Run(run_id, pipeline, holder=this_process(), origin=dict(origin), application=application)
    )
    if error is not None:
        metastore.finish_run(run_id, "failed", error=error.as_dict())
    else:
        metastore.finish_run(run_id, "succeeded", stop_reason=NOTHING_NEW)
    return run_id
