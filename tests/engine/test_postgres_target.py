"""A publish into PostgreSQL without a drain around it: who may, how often, and what of it is seen."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import SecretStr

from drawdown.changes.protocol import Commit, NewRows, Staged
from drawdown.errors import DrawdownError, RefusedError, SourceError, TransformError
from drawdown.metastore.records import Lease, StagedFile
from drawdown.sinks.postgres import database as postgres_database
from drawdown.sinks.postgres.database import connected
from drawdown.sinks.postgres.kind import LEDGER
from drawdown.sinks.postgres.ledger import PostgresLedger
from drawdown.sinks.postgres.publish import PostgresTarget
from drawdown.sinks.postgres.table import PostgresColumn, PostgresTable
from drawdown.spec import Database
from drawdown.spec.sink import OutputMode
from drawdown.storage import Storage
from drawdown.testing.servers.postgres import PostgresServer
from drawdown.values.interval import Interval
from tests.support.database import TestDatabase
from tests.support.registered import change

APP = "drawdown/out/1/output"
COLUMNS = [PostgresColumn("k", "text"), PostgresColumn("n", "bigint")]


class Bench:
    """A table `out` in an odd schema, and staged files of one batch each."""

    def __init__(self, server: PostgresServer, folder: Path, mode: OutputMode = "append") -> None:
        self.read = TestDatabase(server)
        self.table = PostgresTable('odd "schema; --', "out")
        self.folder = folder
        self.database = Database(
            host=server.host,
            port=server.port,
            dbname=self.read.url.rpartition("/")[2],
            user=server.user,
            password=SecretStr(server.password),
        )
        keys = ("k",) if mode == "update" else ()
        self.target = PostgresTarget(Storage(str(folder)), self.database, self.table, mode, keys)
        with psycopg.connect(self.read.url) as connection:
            connection.execute('CREATE SCHEMA "odd ""schema; --"')
            self.table.create(connection, COLUMNS, keys)
            PostgresLedger(self.table.schema, self.table.table).claim(connection)

    def file(self, batch_id: int, rows: list[tuple[str | None, int]]) -> tuple[int, StagedFile]:
        path = self.folder / f"{batch_id}.parquet"
        pq.write_table(pa.table({"k": [k for k, _ in rows], "n": [n for _, n in rows]}), path)
        return batch_id, StagedFile("output", str(path), path.stat().st_size, len(rows), {})

    def publish(self, *files: tuple[int, StagedFile], epoch: int = 1) -> None:
        ids = [batch_id for batch_id, _ in files]
        self.target.make_visible(Staged(ids, files), Commit(APP, max(ids), change(epoch)))

    def rows(self) -> list[tuple[object, ...]]:
        return self.read.execute('SELECT k, n FROM "odd ""schema; --".out ORDER BY k, n')


@pytest.fixture
def bench(postgres_server: PostgresServer, tmp_path: Path) -> Bench:
    return Bench(postgres_server, tmp_path)


def test_the_same_publish_twice_shows_its_rows_once(bench: Bench) -> None:
    files = bench.file(0, [("a", 1)]), bench.file(1, [("a", 1), (None, 2)])
    bench.publish(*files)
    bench.publish(*files)
    assert bench.rows() == [("a", 1), ("a", 1), (None, 2)]
    assert bench.target.published_batch(APP) == bench.target.begun_batch(APP) == 1
    assert bench.target.published_batch("drawdown/out/2/output") == -1


def test_a_smaller_epoch_is_refused_and_a_part_that_is_in_is_not_sent_again(bench: Bench) -> None:
    bench.publish(bench.file(0, [("a", 1)]), epoch=7)
    with pytest.raises(RefusedError) as stale:
        bench.publish(bench.file(1, [("b", 1)]), epoch=6)
    assert stale.value.id == "lease.lost"
    with pytest.raises(SourceError) as overtaken:
        bench.publish(bench.file(0, [("a", 1)]), bench.file(1, [("b", 1)]), epoch=8)
    assert overtaken.value.id == "sink.overtaken"
    assert bench.rows() == [("a", 1)]


def lease(name: str, epoch: int) -> Lease:
    now = datetime(2024, 1, 1, tzinfo=UTC)
    return Lease(name, "here", f"run-{epoch}", epoch, now, now)


def replay(bench: Bench, epoch: int, *rows: tuple[str | None, int]) -> bool:
    """Replace everything by these rows, under the lease of the pipeline's replays."""
    whole = Interval(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
    _, file = bench.file(99, list(rows))
    under = change(epoch, lease="tests#replay")
    return bench.target.replace(
        NewRows(whole, [file], "at", APP, under.lease, lambda last: False, lambda based_on: under, {})
    )


def test_a_fence_of_replays_is_none_for_drains_and_stops_an_older_replay(bench: Bench) -> None:
    bench.read.execute(
        'ALTER TABLE "odd ""schema; --".out ADD COLUMN at timestamptz DEFAULT \'2024-01-01T00:00:00Z\''
    )
    bench.publish(bench.file(0, [("a", 1)]), epoch=2)
    bench.target.fence(lease("tests#replay", 300))
    bench.publish(bench.file(1, [("b", 1)]), epoch=3)
    with pytest.raises(RefusedError) as stale:
        replay(bench, 299, ("c", 1))
    assert stale.value.id == "lease.lost"
    assert bench.rows() == [("a", 1), ("b", 1)]
    assert replay(bench, 300, ("c", 1))
    bench.publish(bench.file(2, [("d", 1)]), epoch=4)
    assert bench.rows() == [("c", 1), ("d", 1)]
    bench.target.fence(lease("tests", 9))
    with pytest.raises(RefusedError):
        bench.publish(bench.file(3, [("e", 1)]), epoch=8)


def test_what_a_rebuild_has_published_fences_no_drain_after_the_swap(bench: Bench) -> None:
    _, file = bench.file(0, [("a", 1)])
    bench.target.make_visible(Staged([0], [(0, file)]), Commit(APP, 0, change(40, lease="tests#rebuild")))
    bench.publish(bench.file(1, [("b", 1)]), epoch=5)
    assert bench.rows() == [("a", 1), ("b", 1)]


def test_a_ledger_of_an_older_version_gets_its_columns_when_they_are_needed(bench: Bench) -> None:
    ledger = f'"odd ""schema; --".{LEDGER}'
    bench.read.execute(f"ALTER TABLE {ledger} DROP COLUMN last_replay, DROP COLUMN epochs")
    bench.publish(bench.file(0, [("a", 1)]), epoch=2)
    bench.target.fence(lease("tests#replay", 7))
    assert bench.read.execute(f"SELECT epoch, epochs ->> 'replay', last_replay FROM {ledger}") == [
        (2, "7", None)
    ]


def test_ten_at_once_show_the_rows_once(bench: Bench) -> None:
    file = bench.file(0, [("a", 1)])
    errors: list[DrawdownError] = []

    def publish(epoch: int) -> None:
        try:
            bench.publish(file, epoch=epoch)
        except DrawdownError as error:
            errors.append(error)

    crowd = [Thread(target=publish, args=(epoch,)) for epoch in range(1, 11)]
    for each in crowd:
        each.start()
    for each in crowd:
        each.join()
    assert bench.rows() == [("a", 1)]
    assert {error.id for error in errors} <= {"lease.lost"}


def test_a_lease_that_was_lost_meanwhile_is_noticed_under_the_ledgers_lock(bench: Bench) -> None:
    def lost() -> None:
        raise RefusedError("lease.lost", "another run has it")

    file = bench.file(0, [("a", 1)])
    with pytest.raises(RefusedError):
        bench.target.make_visible(Staged([0], [file]), Commit(APP, 0, change(), still_ours=lost))
    assert bench.rows() == []
    assert bench.target.published_batch(APP) == -1


def test_the_latest_row_of_a_key_wins_within_one_publish(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    bench = Bench(postgres_server, tmp_path, "update")
    bench.publish(bench.file(0, [("a", 1), (None, 1)]))
    bench.publish(bench.file(1, [("a", 9), ("b", 1)]), bench.file(2, [("a", 2), (None, 3)]))
    assert bench.rows() == [("a", 2), ("b", 1), (None, 3)]


def test_a_row_that_a_constraint_refuses_is_named_and_nothing_is_seen(bench: Bench) -> None:
    bench.read.execute('ALTER TABLE "odd ""schema; --".out ADD CHECK (n < 5)')
    with pytest.raises(TransformError) as refused:
        bench.publish(bench.file(0, [("a", 1), ("b", 5)]))
    assert refused.value.id == "sink.row-refused"
    assert "out_n_check" in refused.value.what
    assert bench.rows() == []


def test_a_table_that_is_not_what_it_was_takes_nothing(bench: Bench) -> None:
    bench.read.execute('ALTER TABLE "odd ""schema; --".out RENAME n TO m')
    with pytest.raises(RefusedError) as refused:
        bench.publish(bench.file(0, [("a", 1)]))
    assert refused.value.id == "sink.changed"
    bench.read.execute('ALTER TABLE "odd ""schema; --".out RENAME m TO n')
    assert bench.rows() == []
    assert bench.target.published_batch(APP) == -1


def test_a_table_that_somebody_locks_is_waited_for_a_while(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(postgres_database._SESSION, "lock_timeout", "200ms")
    file = bench.file(0, [("a", 1)])
    with psycopg.connect(bench.read.url) as other:
        other.execute('LOCK TABLE "odd ""schema; --".out')
        with pytest.raises(SourceError) as refused:
            bench.publish(file)
        assert refused.value.id == "sink.locked"
        other.rollback()
    assert bench.rows() == []
    bench.publish(file)
    assert bench.rows() == [("a", 1)]


def test_a_login_that_is_wrong_is_told_without_the_password(bench: Bench) -> None:
    wrong = bench.database.model_copy(update={"password": SecretStr("geheim-1234")})
    with pytest.raises(SourceError) as refused, connected(wrong, "out"):
        pass
    assert refused.value.id == "sink.unreachable"
    assert "geheim" not in str(refused.value)
