"""The PostgreSQL sink through its faults: what a dead transaction wrote is not seen; each row is once."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.testing.servers.postgres import PostgresServer
from tests.support.database import TestDatabase
from tests.support.deaths import die, free_lease, start_apart
from tests.support.frozen import frozen
from tests.support.sandbox import Sandbox, multiset

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.sql
sink: {format: postgres, table: public.out, schema: out.ddl, SINK}
state: {partitions: 2}
"""
FILES = {"event_ddl": "k STRING, n BIGINT", "out_ddl": "k STRING, n BIGINT"}
ROWS = {**FILES, "transform_sql": "SELECT k, n FROM events"}
SUMS = {**FILES, "transform_sql": "SELECT k, sum(n) AS n FROM events GROUP BY k"}
APPEND, UPSERT = "mode: append", "mode: update, keys: [k]"


class Project:
    """One pipeline and its table; each wave lands two files, a batch each, of three rows."""

    def __init__(self, root: Path, spark: SparkSession, server: PostgresServer, sink: str = APPEND) -> None:
        self.database = TestDatabase(server)
        self.sandbox = Sandbox(root, spark, more=self.database.project_lines)
        self.sums = sink.startswith(UPSERT)
        self.sandbox.pipeline("out", SPEC.replace("SINK", sink), **(SUMS if self.sums else ROWS))
        self.landed: Counter[tuple[str | None, int]] = Counter()

    def land(self, wave: int) -> None:
        for file in range(2):
            rows = [("a", wave), (None, 10 * wave + file), (f"w{wave}", file)]
            self.sandbox.land_json(
                f"landing/events/{wave}{file}.json",
                [{"k": k, "n": n} for k, n in rows],
                mtime=10 * wave + file + 1,
            )
            self.landed.update(rows)

    def seen(self) -> Counter[tuple[str | None, int]]:
        return multiset(self.database.table())  # type: ignore[return-value]

    @property
    def expected(self) -> Counter[tuple[str | None, int]]:
        if not self.sums:
            return +self.landed
        totals: Counter[str | None] = Counter()
        for (key, n), times in self.landed.items():
            totals[key] += n * times
        return Counter((key, total) for key, total in totals.items())

    def settled(self) -> None:
        """Every row once; nothing waits, is locked or left to do."""
        assert self.seen() == self.expected
        assert self.sandbox.drain("out")[0].run is None
        assert not [path for path in self.sandbox.snapshot() if "/staged/part" in path]
        with self.sandbox.metastore() as metastore:
            assert metastore.holder_of("out") is None
            assert {batch.status for batch in metastore.batches("out", 1)} == {"published"}
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'drawdown'"
        assert self.database.execute(sessions) == [(0,)]


@pytest.mark.full
@pytest.mark.fault("F03", "postgres")
@pytest.mark.fault("F04", "postgres")
@pytest.mark.fault("F07", "postgres")
def test_a_publish_that_dies_shows_all_of_its_slice_or_nothing(
    tmp_path: Path, spark: SparkSession, postgres_server: PostgresServer
) -> None:
    project = Project(tmp_path / "project", spark, postgres_server)
    moments = {
        "before batch.end 2": False,
        "after publish.copy 1": False,
        "after publish.commit": True,
    }
    for wave, (moment, visible) in enumerate(moments.items()):
        before = project.expected
        project.land(wave)
        die(project.sandbox, "out", moment)
        assert project.seen() == (project.expected if visible else before), moment
        project.sandbox.run("out")
        project.settled()


@pytest.mark.full
@pytest.mark.fault("F03", "postgres")
def test_a_copy_that_dies_in_the_middle_of_a_file_leaves_no_row(
    tmp_path: Path, spark: SparkSession, postgres_server: PostgresServer
) -> None:
    project = Project(tmp_path / "project", spark, postgres_server)
    many = "SELECT k, n FROM (SELECT k, explode(sequence(1L, 400000L)) AS n FROM events)"
    project.sandbox.pipeline("out", SPEC.replace("SINK", APPEND), **FILES, transform_sql=many)
    project.sandbox.land_json("landing/events/0.json", [{"k": "a", "n": 0}], mtime=1)
    job = start_apart(project.sandbox, "out")
    while not project.database.execute("SELECT 1 FROM pg_stat_progress_copy WHERE tuples_processed > 0"):
        assert job.poll() is None, job.communicate()[0]
    os.killpg(job.pid, signal.SIGKILL)
    assert job.wait() == -signal.SIGKILL
    assert project.seen() == Counter()
    free_lease(project.sandbox)
    project.sandbox.run("out")
    project.landed.update(("a", n) for n in range(1, 400_001))
    project.settled()


@pytest.mark.fault("F04", "postgres")
@pytest.mark.fault("F07", "postgres")
@pytest.mark.parametrize(
    ("sink", "moment"),
    [
        (f"{UPSERT}, publish: direct", "after batch.show 2"),
        pytest.param(UPSERT, "after publish.copy 2", marks=pytest.mark.full),
        pytest.param(UPSERT, "after publish.commit", marks=pytest.mark.full),
        pytest.param(f"{APPEND}, publish: direct", "after batch.show 1", marks=pytest.mark.full),
        pytest.param(f"{APPEND}, publish: direct", "after publish.copy 2", marks=pytest.mark.full),
    ],
)
def test_a_batch_that_dies_around_its_transaction_is_in_once(
    tmp_path: Path, spark: SparkSession, postgres_server: PostgresServer, sink: str, moment: str
) -> None:
    project = Project(tmp_path / "project", spark, postgres_server, sink)
    project.land(0)
    die(project.sandbox, "out", moment)
    project.sandbox.run("out")
    project.settled()


@pytest.mark.fault("F10", "postgres")
@pytest.mark.parametrize(
    "moment", ["after publish.copy 2", pytest.param("before publish.commit", marks=pytest.mark.full)]
)
def test_a_holder_that_sleeps_in_its_publish_is_fenced(
    tmp_path: Path, spark: SparkSession, postgres_server: PostgresServer, moment: str
) -> None:
    project = Project(tmp_path / "project", spark, postgres_server)
    project.land(0)
    with frozen(project.sandbox, "out", moment) as sleeper:
        free_lease(project.sandbox)
        project.sandbox.run("out")
        assert project.seen() == project.expected
        code, printed = sleeper.wake()
    assert code != 0, printed
    # The server ends a transaction that has slept for a minute; before that, its ledger refuses it.
    assert "lease.lost" in printed or "sink.unreachable" in printed, printed
    project.settled()


@pytest.mark.full
@pytest.mark.fault("F07", "postgres")
def test_a_server_that_is_gone_in_a_publish_costs_one_error_and_no_row(
    tmp_path: Path, spark: SparkSession
) -> None:
    with PostgresServer() as server:
        project = Project(tmp_path / "project", spark, server)
        project.land(0)
        with frozen(project.sandbox, "out", "after publish.copy 1") as sleeper:
            server.stop()
            code, printed = sleeper.wake()
        assert (code, printed.count("sink.unreachable")) == (5, 1), printed
        assert "Traceback" not in printed
        error = project.sandbox.drain("out")[0].error
        assert error is not None
        assert error.id == "sink.unreachable"
        server.start()
        assert project.seen() == Counter()
        project.sandbox.run("out")
        project.settled()

        project.land(1)
        with frozen(project.sandbox, "out", "after batch.stage 1") as sleeper:
            server.stop()
            server.start()
            code, printed = sleeper.wake()
        assert code == 0, printed
        project.settled()
