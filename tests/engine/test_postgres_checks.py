"""A database that cannot take a pipeline's rows is refused before anything is made in it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import cast

import pytest
from pyspark.sql.types import StructType

from drawdown.errors import DrawdownError, RefusedError, SpecError
from drawdown.metastore import Metastore
from drawdown.sinks.delta.stage_upsert import DeltaUpsertSink
from drawdown.sinks.postgres.stage import PostgresSink
from drawdown.testing.servers.postgres import PostgresServer
from drawdown.workspace import Workspace
from tests.support.database import TestDatabase
from tests.support.spec_folders import PIPELINE, PROJECT, SpecFolders

SCHEMA = StructType().add("origin", "string").add("hour", "timestamp")
SINK = PIPELINE.partition("sink:")[0] + "sink: {format: postgres, schema: schemas/hourly.ddl, REST}\n"
APPEND = SINK.replace("REST", "table: public.out")
UPDATE = SINK.replace("REST", "table: public.out, mode: update, keys: [origin]")


def refused(folders: SpecFolders, database: str, pipeline: str = APPEND) -> DrawdownError:
    """What a plan of this pipeline ends with."""
    folders.project_file.write_text(PROJECT + database)
    (folders.root / "include/pipelines/hourly/pipeline.yaml").write_text(pipeline)
    loaded = folders.load()
    with pytest.raises(DrawdownError) as caught:
        PostgresSink(Workspace(folders.project, cast(Metastore, None)), loaded).check(SCHEMA, None)
    return caught.value


@pytest.fixture
def folders(tmp_path: Path) -> SpecFolders:
    folders = SpecFolders(tmp_path)
    folders.add()
    return folders


def test_a_schema_that_is_not_there_is_not_made(folders: SpecFolders, database: TestDatabase) -> None:
    error = refused(folders, database.project_lines, APPEND.replace("public.out", "sales.out"))
    assert (type(error), error.id) == (RefusedError, "sink.no-schema")
    assert error.do.startswith('CREATE SCHEMA "sales"')
    assert database.execute("SELECT to_regnamespace('sales')") == [(None,)]


def test_the_rights_that_are_lacking_are_named(folders: SpecFolders, database: TestDatabase) -> None:
    database.execute("CREATE TABLE out (origin text, hour timestamptz)")
    user = database.url.rpartition("/")[2] + "_reader"  # a role is the server's, which other tests share
    password = database.server.password
    database.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{password}'")
    database.execute(f"GRANT SELECT ON out TO {user}")
    lines = database.project_lines.replace(f"user: {database.server.user},", f"user: {user},")
    error = refused(folders, lines)
    assert (type(error), error.id) == (RefusedError, "sink.forbidden")
    assert error.do == "GRANT INSERT ON public.out to it"


def test_a_standby_is_refused(folders: SpecFolders) -> None:
    with PostgresServer() as server:
        database = TestDatabase(server)
        server.stop()
        (server._data / "standby.signal").touch()
        server.start()
        error = refused(folders, database.project_lines)
    assert (type(error), error.id) == (RefusedError, "sink.read-only")


def test_keys_need_a_server_that_takes_null_for_equal(folders: SpecFolders) -> None:
    with server_of("14.9") as port:
        lines = f"databases:\n  default: {{host: 127.0.0.1, port: {port}, dbname: d, user: u}}\n"
        error = refused(folders, lines, UPDATE)
    assert (type(error), error.id) == (RefusedError, "sink.old-server")
    assert error.what.startswith("PostgreSQL 14 has no unique constraint")


def test_a_key_of_several_values_is_refused_before_a_table_is_made(folders: SpecFolders) -> None:
    (folders.root / "include/pipelines/hourly/pipeline.yaml").write_text(
        PIPELINE.replace("mode: append", "mode: update\n  keys: [origin]").partition("replay:")[0]
    )
    schema = StructType().add("origin", StructType().add("code", "string")).add("hour", "timestamp")
    with pytest.raises(SpecError, match="`origin` is struct<code:string>") as caught:
        DeltaUpsertSink(Workspace(folders.project, cast(Metastore, None)), folders.load()).check(schema, None)
    assert caught.value.id == "sink.nested-key"
    assert not (folders.root / "storage").exists()


@contextmanager
def server_of(version: str) -> Iterator[int]:
    """The port of a PostgreSQL of this version, which lets everybody in and answers nothing more."""
    message = b"R\0\0\0\x08\0\0\0\0"
    for name, value in (("server_version", version), ("client_encoding", "UTF8")):
        text = f"{name}\0{value}\0".encode()
        message += b"S" + (len(text) + 4).to_bytes(4, "big") + text
    message += b"Z\0\0\0\x05I"

    def welcome() -> None:
        with listening.accept()[0] as connection:
            while asked := connection.recv(10_000):
                # A request for TLS, 8 bytes, comes before the login.
                connection.sendall(b"N" if len(asked) == 8 else message)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        Thread(target=welcome, daemon=True).start()
        yield listening.getsockname()[1]
