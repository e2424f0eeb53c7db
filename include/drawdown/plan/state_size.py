"""Measures a pipeline's state: rows from its last run, bytes on storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drawdown.metastore.records import Checkpoint, Run
from drawdown.metastore.state_rows import state_rows
from drawdown.storage import Storage


@dataclass(frozen=True)
class StateSize:
    """Rows after the last batch in a run record, None when unknown; files and bytes of all kept versions."""

    rows: int | None
    bytes: int
    files: int


def state_size(storage: Storage, checkpoint: Checkpoint | None, runs: Sequence[Run]) -> StateSize | None:
    """None before the first run.

    Args:
        runs: of the pipeline, newest first.
    """
    if checkpoint is None:
        return None
    found = [info.size for info in storage.walk(f"{checkpoint.path}/state")]
    own = (run for run in runs if run.generation == checkpoint.generation and run.progress)
    last = next((run.progress[-1] for run in own), None)
    rows = None if last is None else state_rows(last["operators"])
    return StateSize(rows, sum(found), len(found))
