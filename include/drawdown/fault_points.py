"""Fault points: named places around every durable step of a run, where a test can make the run die.

    DRAWDOWN_FAULT="kill after batch.note 2"        ACTION before|after STEP [NTH, from 1]

kill: SIGKILL to the whole process group, driver and JVM together. freeze: SIGSTOP to it, like a machine
that sleeps. fail: the step raises OSError. Without the variable, a step costs one check of a cached value.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from drawdown.errors import SpecError

FAULT = "DRAWDOWN_FAULT"
"""Environment variable: which fault, and where; each process reads it once."""

STRUCK = "DRAWDOWN_FAULT_STRUCK"
"""Environment variable: a file that is made just before a fault strikes, to tell it from other deaths."""

STEPS: Mapping[str, str] = {
    "lease.take": "the lease is this run's",
    "run.open": "the run record says running",
    "checkpoint.note": "the generation is in the metastore",
    "past.settle": "the metastore agrees with Spark's commit log; leftovers of crashed runs are gone",
    "query.start": "Spark's query runs; from here on it writes its offset log",
    "batch.files": "sizes and times of a batch's files are in the metastore",
    "batch.stage": "a batch's rows are written where the sink keeps them until they are published",
    "batch.reject": "a batch's rejected rows are written",
    "batch.note": "files, offsets and counts of a batch are in the metastore",
    "batch.show": "direct publishing: the batch is visible",
    "batch.end": "the batch goes back to Spark, which writes its commit log",
    "commits.note": "the metastore knows the batches that Spark has committed",
    "quarantine.publish": "rejected rows are visible",
    "verdict.note": "the verdict is in the metastore",
    "publish.copy": "PostgreSQL: one staged file is sent, in a transaction that is not visible yet",
    "publish.commit": "one commit of the sink: its rows are visible",
    "publish.send": "the rows of one transaction of several are in the sink, invisible",
    "publish.file": "one transaction of several is committed: its rows are visible",
    "publish.note": "the metastore knows what is visible",
    "run.close": "the run record is finished",
}
"""Each step of a drain, and what is durable after it, in the order of a run."""

QUARANTINE_STEPS: Mapping[str, str] = {
    "replay.judge": "quarantined rows are judged again, and those that pass are written to a separate place",
    "replay.note": "the metastore knows which of them go into which batch",
    "replay.plan": "that batch is in Spark's offset log; the steps of a drain follow",
    "drop.note": "the metastore knows which quarantined rows are dropped",
}
"""The same for replays and drops of quarantined rows."""

REPLAY_STEPS: Mapping[str, str] = {
    "replay.stage": "a replay's rows are written apart from the table",
    "replay.commit": "one commit: they are in place of those of its interval",
}
"""The same for a replay."""

REBUILD_STEPS: Mapping[str, str] = {
    "rebuild.compare": "the metastore has the comparison of the shadow with what is live",
    "rebuild.begin": "the metastore knows that a swap is under way: nothing else begins until it has ended",
    "rebuild.swap": "one commit of a table: the shadow has taken its place",
    "rebuild.note": "the metastore knows which generation is live",
    "rollback.begin": "the metastore knows that a roll back is under way",
    "rollback.commit": "one commit of a table: what was there before the swap is back",
    "rollback.note": "the metastore knows that the old generation is live again",
    "rebuild.discard": "the metastore knows that the shadow is not wanted; its files follow",
}
"""The same for a rebuild; its drain has the steps of a drain."""

RECOVERY_STEPS: Mapping[str, str] = {
    "recovery.mark": "the checkpoint says which command is changing it: no run starts until that has ended",
    "recovery.sink": "one table of the sink is as it was",
    "recovery.forget": "the metastore has forgotten the batches behind it; the checkpoint's files follow",
}
"""The same for a rewind or a restore."""

UPKEEP_STEPS: Mapping[str, str] = {
    "upkeep.prune": "what no restart needs is gone from the checkpoint's folder",
    "upkeep.expire": "one commit of the quarantine: rows older than `retention:` are gone",
    "upkeep.compact": "one commit of a table: many small files are few",
    "upkeep.vacuum": "files of a table that are no longer needed are deleted",
    "upkeep.records": "old records are deleted from the metastore",
}
"""The same for an upkeep."""

RENAME_STEPS: Mapping[str, str] = {
    "rename.copy": "one file of the old name is in the folder of the new one",
    "rename.switch": "the metastore knows the pipeline by its new name",
    "rename.remove": "one folder of the old name is gone",
}
"""The same for a rename."""

REMOVE_STEPS: Mapping[str, str] = {
    "remove.files": "one folder of a pipeline whose folder in the project is gone is deleted",
    "remove.records": "the metastore has forgotten the pipeline",
}
"""The same for a removal."""

_ALL = (
    *STEPS, *QUARANTINE_STEPS, *REPLAY_STEPS, *REBUILD_STEPS, *RECOVERY_STEPS, *UPKEEP_STEPS, *RENAME_STEPS,
    *REMOVE_STEPS,
)  # fmt: skip

_ACTIONS = ("kill", "freeze", "fail")
_WORDS = re.compile(r"(\w+) (before|after) ([a-z.]+)(?: ([1-9]\d{0,8}))?")
_FREE = nullcontext()
_STOPS_WITHIN = 1.0


@dataclass
class Fault:
    """A fault at one place; `calls` counts how often its step began."""

    action: str
    when: str
    step: str
    nth: int = 1
    calls: int = 0

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Parse a fault. Raises SpecError ``fault.unknown``."""
        found = _WORDS.fullmatch(text.strip())
        if found is None or found[1] not in _ACTIONS or found[3] not in _ALL:
            raise SpecError(
                "fault.unknown",
                f"{text!r} is no fault",
                where=f"the environment variable {FAULT}",
                do=f"unset it, or write {'|'.join(_ACTIONS)} before|after STEP [NTH], with a STEP of"
                f" {', '.join(_ALL)}",
            )
        return cls(found[1], found[2], found[3], int(found[4] or 1))

    def __str__(self) -> str:
        return f"{self.action} {self.when} {self.step} {self.nth}"

    @contextmanager
    def around(self) -> Iterator[None]:
        self.calls += 1
        if self.when == "before" and self.calls == self.nth:
            self._strike()
        yield
        if self.when == "after" and self.calls == self.nth:
            self._strike()

    def _strike(self) -> None:
        if struck := os.environ.get(STRUCK):
            Path(struck).touch()
        if self.action == "fail":
            raise OSError(f"{FAULT}={self}")
        os.killpg(os.getpgrp(), signal.SIGKILL if self.action == "kill" else signal.SIGSTOP)
        # The signal may stop another thread first, a moment later: this one must not continue meanwhile.
        time.sleep(_STOPS_WITHIN)


@cache
def _armed() -> Fault | None:
    text = os.environ.get(FAULT)
    return Fault.parse(text) if text else None


def durable(step: str) -> AbstractContextManager[None]:
    """``with durable("batch.note"): ...``: after the block, what STEPS says about the step is durable."""
    fault = _armed()
    return _FREE if fault is None or fault.step != step else fault.around()
