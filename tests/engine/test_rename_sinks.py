"""A renamed pipeline whose sink is a database or a topic: its ledger goes on, and each row comes once."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.errors import AuditFailed, DrawdownError
from drawdown.testing.servers.kafka import KafkaServer
from drawdown.testing.servers.postgres import PostgresServer
from tests.support.database import TestDatabase
from tests.support.sandbox import Sandbox
from tests.support.topics import Topic, records
from tests.support.typed import typed

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.sql
sink: SINK
state: {partitions: 2}
"""
POSTGRES = "{format: postgres, table: public.out, schema: event.ddl, mode: append}"
FAILING = "expectations: [{type: expect_table_row_count_to_equal, kwargs: {value: -1}}]\n"
Seen = Callable[[], Counter[str]]


def of_postgres(request: pytest.FixtureRequest, root: Path, spark: SparkSession) -> tuple[Sandbox, Seen]:
    server: PostgresServer = request.getfixturevalue("postgres_server")
    database = TestDatabase(server)
    sandbox = Sandbox(root, spark, more=database.project_lines)
    transform = "SELECT value FROM events"
    sandbox.pipeline(
        "orders", SPEC.replace("SINK", POSTGRES), event_ddl="value STRING", transform_sql=transform
    )
    return sandbox, lambda: Counter(row[0] for row in database.table())


def of_kafka(request: pytest.FixtureRequest, root: Path, spark: SparkSession) -> tuple[Sandbox, Seen]:
    broker: KafkaServer = request.getfixturevalue("broker")
    topic = Topic(broker, "renamed", 2)
    sandbox = Sandbox(root, spark, kafka=broker.bootstrap_servers)
    sink = f"{{format: kafka, topic: {topic.name}, publish: audited}}"
    transform = "SELECT value AS key, value FROM events"
    sandbox.pipeline("orders", SPEC.replace("SINK", sink), event_ddl="value STRING", transform_sql=transform)
    return sandbox, lambda: Counter(value for _, _, value, _ in records(broker, topic.name))


def land(sandbox: Sandbox, number: int, *values: str) -> None:
    sandbox.land_json(f"landing/events/{number}.json", [{"value": v} for v in values], mtime=number + 1)


@pytest.mark.full
@pytest.mark.parametrize("sink", [of_postgres, pytest.param(of_kafka, marks=pytest.mark.full)])
def test_a_held_slice_and_what_comes_later_reach_the_sink_once(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    sink: Callable[[pytest.FixtureRequest, Path, SparkSession], tuple[Sandbox, Seen]],
) -> None:
    sandbox, seen = sink(request, tmp_path / "project", spark)
    monkeypatch.chdir(sandbox.root)
    folder = sandbox.root / "include/pipelines"
    land(sandbox, 0, "a", "b")
    sandbox.run("orders")
    (folder / "orders/quality.yaml").write_text(FAILING)
    land(sandbox, 1, "c")
    land(sandbox, 2, "d", "d")
    with pytest.raises(AuditFailed):
        sandbox.run("orders")
    (folder / "orders/quality.yaml").unlink()
    assert seen() == Counter("ab")

    old = shutil.copytree(folder / "orders", tmp_path / "orders")
    (folder / "orders").rename(folder / "sales")
    spec = folder / "sales/pipeline.yaml"
    spec.write_text(f"first_name: orders\n{spec.read_text()}")
    typed("rename", "orders", "sales", "--why", "a test")
    assert seen() == Counter("ab")
    typed("release", "sales", "--why", "a test")
    assert seen() == Counter("abcdd")
    land(sandbox, 3, "e")
    assert sandbox.run("sales").counts.published == 1
    assert seen() == Counter("abcdde")
    again = sandbox.drain("sales")[0]
    assert (again.run, again.error) == (None, None)
    typed("checkpoint", "show", "sales")
    typed("checkpoint", "verify", "sales")
    assert not (sandbox.storage / "_drawdown/orders").exists()

    shutil.copytree(old, folder / "orders")
    error = sandbox.drain("orders")[0].error
    assert isinstance(error, DrawdownError)
    assert error.id == ("spec.shared-table" if sink is of_postgres else "rename.name-used")
    assert seen() == Counter("abcdde")


FUNCTION = """
from pathlib import Path


def write(batch, token):
    folder = Path("FOLDER")
    mark = folder / f"{token}".replace("/", "-")
    if not mark.exists():
        with (folder / "rows").open("a") as rows:
            rows.writelines(f"{row.value}\\n" for row in batch.collect())
        mark.touch()
"""


def test_the_old_name_is_no_name_for_a_new_pipeline_whose_batches_are_known_by_it(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function that skips what it has would skip the first batches of the new pipeline."""
    sandbox = Sandbox(tmp_path / "project", spark)
    monkeypatch.chdir(sandbox.root)
    folder = sandbox.root / "include/pipelines"

    def orders() -> None:
        spec = SPEC.replace("SINK", "{format: foreach_batch, function: sink.py, publish: direct}")
        sandbox.pipeline(
            "orders", spec, event_ddl="value STRING", transform_sql="SELECT value FROM events",
            sink_py=FUNCTION.replace("FOLDER", str(tmp_path)),
        )  # fmt: skip

    orders()
    land(sandbox, 0, "a")
    sandbox.run("orders")
    (folder / "orders").rename(folder / "sales")
    spec = folder / "sales/pipeline.yaml"
    spec.write_text(f"first_name: orders\n{spec.read_text()}")
    typed("rename", "orders", "sales", "--why", "a test")
    land(sandbox, 1, "b")
    sandbox.run("sales")
    assert (tmp_path / "rows").read_text() == "a\nb\n"
    orders()
    error = sandbox.drain("orders")[0].error
    assert error is not None
    assert error.id == "rename.name-used"
    assert "sales was first called orders" in error.what
