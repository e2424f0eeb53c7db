"""Opening a metastore: its schema, its revisions, and everything it refuses to open."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
import textwrap
from datetime import timedelta
from itertools import product
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from sqlalchemy.event import listen

import drawdown.metastore.migrations as migrations
from drawdown.errors import DrawdownError, MachineError, SourceError, SpecError
from drawdown.metastore import Metastore, connect
from drawdown.metastore.migrate import prepare
from drawdown.metastore.records import Run
from drawdown.metastore.tables import VERSION_TABLE, metadata
from drawdown.testing.servers.postgres import PostgresServer


def refused(url: str) -> DrawdownError:
    with pytest.raises(DrawdownError) as error:
        Metastore.open(url)
    return error.value


def test_the_revisions_lead_to_the_tables_of_the_program(metastore: Metastore) -> None:
    with metastore._engine.connect() as conn:
        context = MigrationContext.configure(
            conn, opts={"version_table": VERSION_TABLE, "compare_type": True, "target_metadata": metadata}
        )
        assert compare_metadata(context, metadata) == []


def test_the_list_of_revisions_is_the_files_oldest_first() -> None:
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert tuple(s.revision for s in scripts.walk_revisions())[::-1] == migrations.REVISIONS


@pytest.fixture
def older(store_url: str) -> Run:
    """The run that a store of schema 0002 holds."""
    with Metastore.open(store_url) as store:
        run = store.start_run(Run("r1", "flights"))
        with store._writer.begin() as conn:
            for table, count in product(("runs", "batches"), ("sessionless", "lost", "replayed")):
                conn.execute(text(f"ALTER TABLE {table} DROP COLUMN {count}"))
            for index in ("ix_runs_application", "ix_runs_request"):
                conn.execute(text(f"DROP INDEX {index}"))
            for column in ("notices", "application", "usage", "request", "phases"):
                conn.execute(text(f"ALTER TABLE runs DROP COLUMN {column}"))
            conn.execute(text("ALTER TABLE leases DROP COLUMN process"))
            later = ("applications", "changes", "clusters", "cluster_instances", "figures", "backlogs")
            for table in (*later, "announcements", "claims"):
                conn.execute(text(f"DROP TABLE {table}"))
            conn.execute(text("ALTER TABLE verdicts DROP COLUMN measures"))
            conn.execute(text("ALTER TABLE batches DROP COLUMN treatment"))
            for column in ("state", "rebuild", "judging", "begun_batch"):
                conn.execute(text(f"ALTER TABLE checkpoints DROP COLUMN {column}"))
            conn.execute(text("DROP TABLE read_files"))
            conn.execute(text("DROP TABLE quarantine_decisions"))
            conn.execute(text(f"ALTER TABLE {VERSION_TABLE} DROP COLUMN oldest_program"))
            conn.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0002'"))
    return run


def columns(url: str) -> dict[str, list[str]]:
    """Table to its columns."""
    engine = connect.connect(url)
    look = inspect(engine)
    found = {name: [each["name"] for each in look.get_columns(name)] for name in look.get_table_names()}
    engine.dispose()
    return found


@pytest.mark.capability("OWN-03")
def test_opening_an_older_store_is_refused_and_changes_nothing(store_url: str, older: Run) -> None:
    before = columns(store_url)
    error = refused(store_url)
    assert isinstance(error, MachineError)
    assert (error.id, "0002" in error.what) == ("metastore.older", True)
    assert error.do.endswith("`drawdown metastore upgrade`")
    assert columns(store_url) == before


def test_an_upgrade_brings_an_older_store_up_and_keeps_what_it_holds(store_url: str, older: Run) -> None:
    assert Metastore.upgrade(store_url) == ("0002", migrations.HEAD)
    assert Metastore.upgrade(store_url) == (migrations.HEAD, migrations.HEAD)
    with Metastore.open(store_url) as store:
        assert store.runs() == [older]
        assert store.start_run(Run("r2", "flights")).run_id == "r2"


def test_an_upgrade_makes_a_store_where_there_is_none(store_url: str) -> None:
    assert Metastore.upgrade(store_url) == (None, migrations.HEAD)
    Metastore.open(store_url).close()


def test_a_store_that_lacks_only_what_this_program_can_do_without_is_used_as_it_is(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Metastore.open(store_url).close()
    before = columns(store_url)
    later = (*migrations.REVISIONS, "9998", "9999")
    monkeypatch.setattr(migrations, "REVISIONS", later)
    monkeypatch.setattr(migrations, "OPTIONAL", {"9998", "9999"})
    with Metastore.open(store_url) as store:
        store.start_run(Run("r1", "flights"))
    monkeypatch.setattr(migrations, "OPTIONAL", {"9999"})
    error = refused(store_url)
    assert (error.id, "needs 9998" in error.what) == ("metastore.older", True)
    assert columns(store_url) == before


def made_newer(url: str, oldest: str) -> None:
    """As a later release leaves it: with a column more, of which this program knows nothing."""
    with Metastore.open(url) as store, store._writer.begin() as conn:
        conn.execute(text("ALTER TABLE runs ADD COLUMN later TEXT"))
        conn.execute(
            text(f"UPDATE {VERSION_TABLE} SET version_num = '9999', oldest_program = :oldest"),
            {"oldest": oldest},
        )


def test_the_release_before_goes_on_with_a_newer_store_that_allows_it(store_url: str) -> None:
    made_newer(store_url, oldest=migrations.HEAD)
    with Metastore.open(store_url) as store:
        store.start_run(Run("r1", "flights"))
        store.finish_run("r1", "succeeded")
        assert [run.state for run in store.runs()] == ["succeeded"]
    assert Metastore.upgrade(store_url) == ("9999", "9999")
    assert "later" in columns(store_url)["runs"]


def test_a_newer_store_that_does_not_allow_this_program_is_refused_and_left_alone(store_url: str) -> None:
    made_newer(store_url, oldest="9998")
    before = columns(store_url)
    error = refused(store_url)
    assert isinstance(error, MachineError)
    assert (error.id, "9999" in error.what, "upgrade" in error.do) == ("metastore.newer", True, True)
    with pytest.raises(MachineError, match=r"metastore\.newer"):
        Metastore.upgrade(store_url)
    assert columns(store_url) == before


def test_a_newer_store_of_a_program_that_notes_nothing_is_refused(store_url: str) -> None:
    with Metastore.open(store_url) as store, store._writer.begin() as conn:
        conn.execute(text(f"ALTER TABLE {VERSION_TABLE} DROP COLUMN oldest_program"))
        conn.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    assert refused(store_url).id == "metastore.newer"


def test_which_program_may_go_on_is_the_one_before_what_was_only_added(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    *_, oldest, one, two = migrations.REVISIONS
    monkeypatch.setattr(migrations, "ADDING", {one, two})
    Metastore.open(store_url).close()
    engine = connect.connect(store_url)
    with engine.connect() as conn:
        assert conn.execute(text(f"SELECT oldest_program FROM {VERSION_TABLE}")).scalar() == oldest
    engine.dispose()


def test_what_only_adds_takes_nothing_away_and_asks_nothing_of_who_writes(tmp_path: Path) -> None:
    """Of each revision that claims it; and what is optional adds no table or column."""
    assert migrations.OPTIONAL <= migrations.ADDING <= set(migrations.REVISIONS)
    for revision in sorted(migrations.ADDING):
        before, after = (
            schema_at(tmp_path / f"{revision}-{which}.db", which)
            for which in (migrations.REVISIONS[migrations.REVISIONS.index(revision) - 1], revision)
        )
        assert before.items() <= after.items(), revision
        new = {name: required for name, required in after.items() if name not in before}
        known = {table for table, _ in before}
        assert not [name for name, required in new.items() if required and name[0] in known], revision
        assert not new or revision not in migrations.OPTIONAL


def schema_at(path: Path, revision: str) -> dict[tuple[str, str], bool]:
    """Table and column, at this revision, to whether who writes must give a value."""
    from alembic import command
    from alembic.config import Config

    engine = connect.connect(f"sqlite:///{path}")
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    with engine.connect() as conn, conn.begin():
        config.attributes["connection"] = conn
        command.upgrade(config, revision)
    look = inspect(engine)
    found = {
        (table, each["name"]): not each["nullable"] and each["default"] is None
        for table in look.get_table_names()
        for each in look.get_columns(table)
    }
    engine.dispose()
    return found


def test_opening_again_finds_what_was_written(store_url: str) -> None:
    with Metastore.open(store_url) as store:
        run = store.start_run(Run("r1", "flights"))
    with Metastore.open(store_url) as store:
        assert store.runs() == [run]


def test_opening_a_current_metastore_imports_no_alembic(store_url: str) -> None:
    Metastore.open(store_url).close()
    program = textwrap.dedent("""
        import sys
        from drawdown.metastore import Metastore
        Metastore.open(sys.argv[1]).close()
        sys.exit("alembic" in sys.modules)
    """)
    subprocess.run([sys.executable, "-c", program, store_url], check=True)


def test_a_database_of_something_else_is_refused_and_left_alone(store_url: str) -> None:
    engine = connect.connect(store_url)
    with engine.begin() as conn:
        conn.execute(text("CREATE TABLE dag_run (id INTEGER)"))
    error = refused(store_url)
    assert isinstance(error, MachineError)
    assert error.id == "metastore.foreign"
    assert "dag_run" in error.what
    assert inspect(engine).get_table_names() == ["dag_run"]
    engine.dispose()


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but longer than a database's header would be\n" * 20)
    before = path.read_bytes()
    error = refused(f"sqlite:///{path}")
    assert isinstance(error, MachineError)
    assert error.id == "metastore.foreign"
    assert str(path) in error.where
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_in_the_files_place_is_refused(tmp_path: Path) -> None:
    error = refused(f"sqlite:///{tmp_path}")
    assert isinstance(error, MachineError)
    assert error.id == "metastore.unreachable"


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    error = refused(f"sqlite:///{tmp_path / 'state' / 'metastore.db'}")
    assert isinstance(error, MachineError)
    assert error.id == "metastore.unreachable"


@pytest.mark.parametrize(
    "url",
    [
        "metastore.db",
        "mysql://user:geheim@host/db",
        "oracle+nothing://user:geheim@host/db",
        "postgresql://user:geheim@host:port/db",
        "sqlite://",
        "sqlite:///:memory:",
        "",
    ],
)
def test_an_address_that_cannot_be_a_metastore_is_a_spec_error_without_its_password(url: str) -> None:
    error = refused(url)
    assert isinstance(error, SpecError)
    assert error.id == "metastore.url"
    assert "geheim" not in str(error)


def test_a_server_that_is_not_there_is_unreachable_and_its_password_not_shown() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    error = refused(f"postgresql://user:geheim@127.0.0.1:{port}/metastore?password=geheim")
    assert isinstance(error, SourceError)
    assert error.id == "metastore.unreachable"
    assert str(port) in error.where
    assert "geheim" not in str(error)


def test_a_wrong_password_and_a_missing_database_are_told(postgres_server: PostgresServer) -> None:
    wrong = postgres_server.url("postgres").replace(postgres_server.password, "geheim")
    error = refused(wrong)
    assert (type(error), error.id) == (SourceError, "metastore.unreachable")
    assert "password authentication failed" in error.what
    assert "geheim" not in str(error)
    error = refused(postgres_server.url("nowhere"))
    assert (type(error), error.id) == (SourceError, "metastore.unreachable")
    assert '"nowhere" does not exist' in error.what


def test_a_user_who_may_make_no_tables_is_told_which_rights_are_lacking(
    postgres_server: PostgresServer,
) -> None:
    url = postgres_server.create_database()
    name = url.rpartition("/")[2]
    with psycopg.connect(url) as owner:
        owner.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'geheim'")
    error = refused(f"postgresql://{name}:geheim@{postgres_server.host}:{postgres_server.port}/{name}")
    assert (type(error), error.id) == (MachineError, "metastore.forbidden")
    assert "permission denied for schema public" in error.what
    assert "geheim" not in str(error)
    with psycopg.connect(url) as owner:
        made = owner.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    assert made == (0,)


def test_a_store_another_process_keeps_locked_is_told_and_unchanged(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "WAIT_SECONDS", 1)
    with Metastore.open(store_url) as store, Metastore.open(store_url) as other:
        lease = store.acquire("flights", "host pid 1", "r1", timedelta(seconds=60))
        with store.fenced(lease):
            with pytest.raises(SourceError) as locked:
                other.create_checkpoint(lease, 0, "checkpoint-0", {})
            assert locked.value.id == "metastore.locked"
            assert other.active_checkpoint("flights") is None  # readers never wait
        other.create_checkpoint(lease, 1, "checkpoint-1", {})
        found = store.active_checkpoint("flights")
        assert found is not None
        assert found.generation == 1


def test_a_server_that_stops_is_told_and_a_restarted_one_found_again() -> None:
    with PostgresServer() as server, Metastore.open(server.create_database()) as store:
        run = store.start_run(Run("r1", "flights"))
        server.stop()
        with pytest.raises(SourceError) as gone:
            store.finish_run("r1", "succeeded")
        assert gone.value.id == "metastore.unreachable"
        server.start()
        assert store.run("r1") == run


def test_a_run_does_not_notice_that_the_server_was_restarted_between_two_calls() -> None:
    with PostgresServer() as server, Metastore.open(server.create_database()) as store:
        run = store.start_run(Run("r1", "flights"))
        server.stop()
        server.start()
        assert store.run("r1") == run


def test_a_sqlite_metastore_makes_its_folder_private_and_writes_ahead(tmp_path: Path) -> None:
    path = tmp_path / ".drawdown" / "metastore.db"
    Metastore.open(f"sqlite:///{path}").close()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_fresh_database_that_another_process_fills_meanwhile_is_not_taken_for_foreign(
    postgres_server: PostgresServer,
) -> None:
    url = postgres_server.create_database()
    engine = connect.connect(url)
    opened: list[str] = []

    def fill(conn: object, cursor: object, statement: str, *rest: object) -> None:
        # Right behind the first look at the tables, before whatever comes next.
        if "pg_class" in statement and not opened:
            opened.append(statement)
            program = (
                "import sys; from drawdown.metastore import Metastore; Metastore.open(sys.argv[1]).close()"
            )
            subprocess.run([sys.executable, "-c", program, url], check=True)

    listen(engine, "after_cursor_execute", fill)
    prepare(engine)
    engine.dispose()
    assert opened
    Metastore.open(url).close()
