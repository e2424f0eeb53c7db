"""SRC: Spark's sources for tests, and data sources written in Python."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from drawdown.errors import RefusedError, SourceError, TransformError
from drawdown.plan.preflight import preflight
from drawdown.workspace import Workspace
from tests.support.refusals import refused, refused_spec
from tests.support.sandbox import Sandbox
from tests.support.verdicts import verdicts
from tests.support.watching import watching

SPEC = """
{schedule}
sources:
  ticks: {{format: {format}, options: {options}{more}}}
transform: transform.sql
sink: {{format: delta, path: tables/out, schema: out.ddl}}
state: {{partitions: 2}}
"""
TICKS = {
    "out_ddl": "timestamp TIMESTAMP, value BIGINT",
    "transform_sql": "SELECT timestamp, value FROM ticks",
}


def _spec(format: str, options: str, more: str = "", schedule: str = "") -> str:
    return SPEC.format(format=format, options=options, more=more, schedule=schedule)


PER_BATCH = "{rowsPerBatch: 3, startTimestamp: 60000, advanceMillisPerBatch: 1000, numPartitions: 1}"


@pytest.mark.full
@pytest.mark.conformance("SRC-16")
def test_rate_micro_batch_goes_on_where_the_last_run_ended(sandbox: Sandbox) -> None:
    sandbox.pipeline("ticking", _spec("rate-micro-batch", PER_BATCH), **TICKS)
    for _ in range(2):
        counts = sandbox.run("ticking").counts
        assert (counts.read, counts.fed) == (3, 3)
    first, second = datetime(1970, 1, 1, 0, 1, 0, tzinfo=UTC), datetime(1970, 1, 1, 0, 1, 1, tzinfo=UTC)
    expected = [(first, 0), (first, 1), (first, 2), (second, 3), (second, 4), (second, 5)]
    assert sandbox.delta("tables/out") == expected


@pytest.mark.full
@pytest.mark.conformance("SRC-16")
def test_rate_gives_each_number_once_over_several_runs(sandbox: Sandbox) -> None:
    sandbox.pipeline("rated", _spec("rate", "{rowsPerSecond: 20, numPartitions: 1}"), **TICKS)
    runs = [sandbox.run("rated")]
    while sum(run.counts.read for run in runs) < 20 or len(runs) < 3:
        runs.append(sandbox.run("rated"))
    values = [value for _, value in sandbox.delta("tables/out")]
    assert sorted(values) == list(range(sum(run.counts.fed for run in runs)))


@pytest.mark.conformance("SRC-16")
@pytest.mark.parametrize(
    ("format", "options", "why"),
    [
        ("rate", "{rowsPerSecond: 1}", "Spark generates its rows"),
        ("rate-micro-batch", PER_BATCH, "Spark generates its rows"),
        ("socket", "{host: localhost, port: 9999}", "cannot be read again"),
    ],
)
def test_a_source_for_tests_has_no_schedule_and_no_dag(
    sandbox: Sandbox, format: str, options: str, why: str
) -> None:
    files = (
        TICKS if format != "socket" else {"out_ddl": "value STRING", "transform_sql": "SELECT * FROM ticks"}
    )
    scheduled = _spec(format, options, schedule='schedule: "@daily"')
    error = refused_spec(sandbox, "ticking", scheduled, "spec.test-only", **files)
    assert why in error.what
    assert "remove `schedule:`" in error.do

    pipeline = sandbox.pipeline("ticking", _spec(format, options), **files)
    with sandbox.metastore() as metastore:
        found = preflight(Workspace(sandbox.project, metastore), pipeline)
    assert found.reasons == [f"source ticks: only Spark can tell whether a {format} source has data"]

    misspelt = options.replace("{", "{rowPerSecond: 1, ")
    refused_spec(sandbox, "misspelt", _spec(format, misspelt), "spec.unknown-option", **files)


@pytest.fixture
def lines() -> Iterator[int]:
    """The port of a server that says two lines to whoever comes, and keeps the line open."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        said = iter("abcdefgh")
        open_lines = []

        def serve() -> None:
            while True:
                try:
                    line, _ = server.accept()
                except OSError:
                    return
                open_lines.append(line)
                line.sendall(f"{next(said)}\n{next(said)}\n".encode())

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        for line in open_lines:
            line.close()


@pytest.mark.full
@pytest.mark.conformance("SRC-16")
def test_a_socket_is_watched_once_and_never_gone_on_with(sandbox: Sandbox, lines: int) -> None:
    files = {"out_ddl": "value STRING", "transform_sql": "SELECT value FROM ticks"}
    options = f"{{host: 127.0.0.1, port: {lines}}}"
    sandbox.pipeline("heard", _spec("socket", options), **files)
    with watching(sandbox, "heard") as watched:
        watched.until(lambda: (sandbox.storage / "tables/out/_delta_log").exists())
        watched.until(lambda: len(sandbox.delta("tables/out")) == 2)
    assert watched.run.counts.read == 2
    assert sandbox.delta("tables/out") == [("a",), ("b",)]
    error = refused(sandbox, "heard", "source.socket-again", RefusedError)
    assert "has read 2 lines of the socket ticks" in error.what
    assert "land the lines as text files" in error.do


READER = """
from pathlib import Path

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.datasource import SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow


class Clock(DataSource):
    @classmethod
    def name(cls):
        return "clock"

    def schema(self):
        return "value INT, tick STRING"

    {method}


def now(options):
    text = Path(options["face"]).read_text()
    if not text.isdigit():
        raise ValueError("the clock stands still at " + text)
    return int(text)


class Simple(SimpleDataSourceStreamReader):
    def __init__(self, options):
        self.options = options

    def initialOffset(self):
        return {{"at": 0}}

    def read(self, start):
        end = {{"at": max(now(self.options), start["at"])}}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start, end):
        return iter([(i, self.options["says"]) for i in range(start["at"], end["at"])])


class Partitioned(DataSourceStreamReader):
    def __init__(self, options):
        self.options = options

    def initialOffset(self):
        return {{"at": 0}}

    def getDefaultReadLimit(self):
        return ReadMaxRows(2)

    def latestOffset(self, start, limit):
        end = max(now(self.options), start["at"])
        return {{"at": min(end, start["at"] + limit.max_rows) if isinstance(limit, ReadMaxRows) else end}}

    def partitions(self, start, end):
        return [InputPartition(i) for i in range(start["at"], end["at"])]

    def read(self, partition):
        now(self.options)
        yield partition.value, self.options["says"]


class Bounded(Partitioned, SupportsTriggerAvailableNow):
    def prepareForTriggerAvailableNow(self):
        self.end = now(self.options)

    def latestOffset(self, start, limit):
        return {{"at": min(self.end, super().latestOffset(start, limit)["at"])}}
"""
CLOCK = "def streamReader(self, schema):\n        return {}(self.options)"
SIMPLE = "def simpleStreamReader(self, schema):\n        return Simple(self.options)"


def _clock(sandbox: Sandbox, method: str) -> None:
    face = sandbox.root / "face"
    sandbox.pipeline(
        "clocked",
        _spec("python", f'{{face: "{face}", says: tick}}', ", reader: clock.py"),
        clock_py=READER.format(method=method),
        out_ddl="value INT, tick STRING",
        transform_sql="SELECT value, tick FROM ticks",
    )


def _set(sandbox: Sandbox, text: str) -> None:
    (sandbox.root / "face").write_text(text)


@pytest.mark.sampled
@pytest.mark.conformance("SRC-19")
@pytest.mark.parametrize(
    ("method", "batches"),
    [(SIMPLE, [1, 1]), (CLOCK.format("Partitioned"), [1, 1]), (CLOCK.format("Bounded"), [2, 2])],
    ids=["simple", "partitioned", "available-now"],
)
def test_a_python_data_source_goes_on_from_its_offset(
    sandbox: Sandbox, method: str, batches: list[int]
) -> None:
    _clock(sandbox, method)
    _set(sandbox, "3")
    first = sandbox.run("clocked")
    _set(sandbox, "7")
    second = sandbox.run("clocked")
    # A limit of the reader's own holds in a drain only where it knows Trigger.AvailableNow.
    assert [first.batches, second.batches] == batches
    assert (first.counts.read, second.counts.fed) == (3, 4)
    assert sandbox.delta("tables/out") == [(i, "tick") for i in range(7)]
    assert "SupportsTriggerAvailableNow" in verdicts(sandbox, "clocked")["source.reader-limit"].what


@pytest.mark.full
@pytest.mark.conformance("SRC-19")
@pytest.mark.parametrize("method", [SIMPLE, CLOCK.format("Partitioned")], ids=["simple", "partitioned"])
def test_what_a_reader_raises_is_one_error_with_its_line(sandbox: Sandbox, method: str) -> None:
    _clock(sandbox, method)
    _set(sandbox, "2")
    sandbox.run("clocked")
    _set(sandbox, "noon")
    error = sandbox.drain("clocked")[0].error
    assert error is not None
    assert (error.id, type(error)) == ("source.raised", SourceError)
    assert "ValueError: the clock stands still at noon" in error.what
    file, _, line = error.where.rpartition(":")
    reader = sandbox.root / "include/pipelines/clocked/clock.py"
    assert file == str(reader)
    assert 'raise ValueError("the clock' in reader.read_text().splitlines()[int(line) - 1]
    _set(sandbox, "4")
    sandbox.run("clocked")
    assert sandbox.delta("tables/out") == [(i, "tick") for i in range(4)]


@pytest.mark.conformance("SRC-19")
def test_a_reader_that_does_not_load_is_refused(sandbox: Sandbox) -> None:
    _clock(sandbox, SIMPLE)
    reader = sandbox.root / "include/pipelines/clocked/clock.py"
    reader.write_text("import pathlib\nraise OSError('no spring')\n")
    error = refused(sandbox, "clocked", "source.reader", TransformError)
    assert "OSError: no spring" in error.what
    assert error.where == f"{reader}:2"
    reader.write_text("class Clock: ...\n")
    error = refused(sandbox, "clocked", "source.reader", TransformError)
    assert "must define one DataSource, and defines 0" in error.what
    reader.unlink()
    spec = _spec("python", "{face: x}", ", reader: clock.py")
    missing = refused_spec(sandbox, "clocked", spec, "spec.file-missing", transform_sql="SELECT 1")
    assert "clock.py does not exist" in missing.what
