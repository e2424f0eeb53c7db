"""A sink or a quarantine that somebody puts back from an older copy: noticed, with a way on."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.database import TestDatabase
from tests.support.kill_matrix import FILES, KINDS, NAME, SPEC, land
from tests.support.recovering import checkpoint, command_of, fix, refused
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.capability("RIGHT-05")


def rows(sandbox: Sandbox, kind: str) -> Counter[tuple[object, ...]]:
    spark = sandbox.spark
    assert spark is not None
    assert spark._jvm is not None
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    return KINDS[kind].rows(sandbox)


def put_back(sandbox: Sandbox, folder: str) -> None:
    shutil.rmtree(sandbox.storage / folder)
    shutil.copytree(sandbox.root / "kept", sandbox.storage / folder)


def keep(sandbox: Sandbox, folder: str) -> None:
    shutil.copytree(sandbox.storage / folder, sandbox.root / "kept")


@pytest.mark.parametrize(
    ("kind", "folder"),
    [
        ("delta append audited", "tables/hourly"),
        ("delta append audited", f"quarantine/{NAME}"),
        pytest.param("delta update direct", "tables/hourly", marks=pytest.mark.full),
        pytest.param("parquet files", "tables/hourly", marks=pytest.mark.full),
        pytest.param("delta complete audited", "tables/hourly", marks=pytest.mark.full),
    ],
)
def test_what_an_older_copy_lacks_is_taken_in_again(
    tmp_path: Path, spark: SparkSession, kind: str, folder: str
) -> None:
    sandbox = KINDS[kind].project(tmp_path / "project", spark)
    land(sandbox, 0)
    sandbox.run(NAME)
    keep(sandbox, folder)
    land(sandbox, 1)
    sandbox.run(NAME)
    wanted, aside = rows(sandbox, kind), len(sandbox.quarantined(NAME))
    put_back(sandbox, folder)
    before = sandbox.snapshot()
    land(sandbox, 2)
    sandbox_with_new_files = sandbox.snapshot()
    error = refused(sandbox, "sink.older-copy")
    assert sandbox.snapshot() == sandbox_with_new_files
    assert before.keys() <= sandbox_with_new_files.keys()
    text = error.do.split("put the newer copy back; or ")[1]
    assert command_of(text)[:2] == ["checkpoint", "rewind"]
    for number in (4, 5):
        (sandbox.storage / f"landing/events/{number}.csv").unlink()
    fix(sandbox, text)
    sandbox.drain(NAME)
    assert rows(sandbox, kind) == wanted
    assert len(sandbox.quarantined(NAME)) == aside


def test_a_person_may_go_on_without_what_an_older_copy_lacks(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        NAME, SPEC.replace("SINK", "schema: out.ddl, format: delta, path: tables/hourly"), **FILES
    )
    land(sandbox, 0)
    sandbox.run(NAME)
    keep(sandbox, "tables/hourly")
    first = rows(sandbox, "delta append audited")
    land(sandbox, 1)
    sandbox.run(NAME)
    both = rows(sandbox, "delta append audited")
    put_back(sandbox, "tables/hourly")
    land(sandbox, 2)
    error = refused(sandbox, "sink.older-copy")
    assert f"`drawdown checkpoint accept {NAME} --why ...` goes on without these rows" in error.do
    checkpoint(sandbox, "accept", "--why", "the disk was lost")
    sandbox.run(NAME)
    now = rows(sandbox, "delta append audited")
    assert first <= now
    assert not (both - first) & now, "they stay out"
    land(sandbox, 3)
    sandbox.run(NAME)


def test_a_database_that_was_put_back_is_noticed(postgres_sandbox: Sandbox, database: TestDatabase) -> None:
    sandbox = postgres_sandbox
    spec = SPEC.replace("SINK", "schema: out.ddl, format: postgres, table: public.hourly")
    sandbox.pipeline(NAME, spec, **FILES)
    land(sandbox, 0)
    sandbox.run(NAME)
    for table in ("hourly", "drawdown_ledger"):
        database.execute(f"CREATE TABLE kept_{table} AS TABLE {table}")
    land(sandbox, 1)
    sandbox.run(NAME)
    wanted = Counter(database.execute("SELECT * FROM hourly"))
    for table in ("hourly", "drawdown_ledger"):
        database.execute(f"DELETE FROM {table}")
        database.execute(f"INSERT INTO {table} SELECT * FROM kept_{table}")
    land(sandbox, 2)
    error = refused(sandbox, "sink.older-copy")
    for number in (4, 5):
        (sandbox.storage / f"landing/events/{number}.csv").unlink()
    fix(sandbox, error.do.split("put the newer copy back; or ")[1])
    sandbox.drain(NAME)
    assert Counter(database.execute("SELECT * FROM hourly")) == wanted
