"""One function, several sinks of different kinds, and a crash between them: each has every row once.

The function is the pattern of docs/guarantees.md, "Several sinks at once": by Delta's own transaction id,
by a ledger row in the same PostgreSQL transaction, and by files that an attempt writes over.
"""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.database import TestDatabase
from tests.support.deaths import free_lease, run_apart
from tests.support.sandbox import Sandbox
from tests.support.spark import ROOT

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.sql
sink: {format: foreach_batch, function: sink.py}
state: {partitions: 2}
"""
# The places between two writes, where the environment may say that the process dies.
DIES = "DIES_AFTER"
_PLACE = """
    _die("{}")
"""
HEAD = f'''
import os
import signal
from pathlib import Path


def _die(place):
    if os.environ.get("{DIES}") == f"{{place}} {{_calls.setdefault(place, 0)}}":
        os.killpg(os.getpgrp(), signal.SIGKILL)
    _calls[place] += 1


_calls = {{}}
'''


def _pattern() -> str:
    """The function of the document."""
    page = (ROOT / "docs" / "guarantees.md").read_text()
    found = re.search(r"### Several sinks at once.*?```python\n(.*?)```", page, re.DOTALL)
    assert found is not None
    return found[1]


def _code(folder: Path, address: str) -> str:
    """The document's function with the addresses of this test, and a place to die after each write."""
    code = _pattern().replace('"/lake/events"', repr(f"{folder}/lake"))
    code = code.replace("/export/events", f"{folder}/export")
    code = code.replace('os.environ["EVENTS_DATABASE"]', repr(address))
    for place in ("delta", "postgres"):
        marker = f"    # {place} has it\n"
        assert marker in code
        code = code.replace(marker, _PLACE.format(place))
    return HEAD + code


@pytest.mark.full
@pytest.mark.fault("F04", "function")
def test_a_crash_between_two_sinks_leaves_each_with_every_row_once(
    sandbox: Sandbox, spark: SparkSession, database: TestDatabase
) -> None:
    database.execute("CREATE TABLE events (id int, name text)")
    database.execute("CREATE TABLE drawdown_batches (app_id text PRIMARY KEY, batch_id bigint NOT NULL)")
    sandbox.pipeline("fan_out", SPEC, event_ddl="id INT, name STRING",
                       transform_sql="SELECT * FROM events",
                       sink_py=_code(sandbox.storage, database.url))  # fmt: skip
    expected: Counter[tuple[object, ...]] = Counter()
    for wave, place in enumerate(["delta 1", "postgres 0"]):
        for file in range(2):
            rows = [(n % 3, f"twin {n % 3}") for n in range(5)] + [(100 * wave + file, "one")]
            expected.update(rows)
            sandbox.land_json(f"landing/events/{wave}{file}.json",
                                [{"id": id, "name": name} for id, name in rows],
                                mtime=10 * wave + file + 1)  # fmt: skip
        _die(sandbox, place)
        assert len(_delta(sandbox)) > len(_files(sandbox, spark)), "it died between two sinks"
        sandbox.run("fan_out")
        assert Counter(_delta(sandbox)) == expected, place
        assert Counter(database.table("events")) == expected, place
        assert Counter(_files(sandbox, spark)) == expected, place
        assert sandbox.drain("fan_out")[0].run is None


def _delta(sandbox: Sandbox) -> list[tuple[object, ...]]:
    return sandbox.delta("lake")


def _files(sandbox: Sandbox, spark: SparkSession) -> list[tuple[object, ...]]:
    folder = sandbox.storage / "export"
    frame = spark.read.schema("id INT, name STRING").parquet(f"{folder}/*") if folder.exists() else None
    return [tuple(row) for row in frame.collect()] if frame is not None else []


def _die(sandbox: Sandbox, place: str) -> None:
    """Run until the function has come so often to a place between its writes."""
    os.environ[DIES] = place
    try:
        job = run_apart(sandbox, "fan_out")
    finally:
        del os.environ[DIES]
    assert job.returncode == -signal.SIGKILL, job.stdout
    free_lease(sandbox)
