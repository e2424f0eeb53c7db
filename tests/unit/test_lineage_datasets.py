"""Names of datasets by OpenLineage's conventions, and where events go by project and environment."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from drawdown.errors import SpecError
from drawdown.observe.lineage.datasets import DatasetName, file_dataset, inputs_of, output_of
from drawdown.observe.lineage.parent import ParentRun, event_run_id, parent_facet
from drawdown.observe.lineage.settings import destination
from drawdown.observe.lineage.spool import Spool
from drawdown.spec import load_project
from tests.support.sandbox import Sandbox

SERVERS = """
databases:
  default: {host: db.example.org, port: 5433, dbname: warehouse, user: loader}
storages:
  lake: {address: "s3://lake/raw", region: eu-west-1}
"""


@pytest.mark.capability("SEE-13")
@pytest.mark.parametrize(
    ("path", "namespace", "name"),
    [
        ("/data/tables/out", "file", "/data/tables/out"),
        ("file:///data/tables/out/", "file", "/data/tables/out"),
        ("/data/landing/*/x.json", "file", "/data/landing"),
        ("s3a://lake/raw/clicks", "s3://lake", "raw/clicks"),
        ("gs://lake/raw/", "gs://lake", "raw"),
        ("s3a://lake", "s3://lake", "/"),
        ("abfss://box@account.dfs.core.windows.net/raw", "abfss://box@account.dfs.core.windows.net", "raw"),
        ("hdfs://name:8020/raw/a", "hdfs://name:8020", "raw/a"),
    ],
)
def test_a_folder_is_named_by_its_store_and_path(path: str, namespace: str, name: str) -> None:
    assert file_dataset(path) == DatasetName(namespace, name)


def _pipeline(
    tmp_path: Path, sources: str, sink: str
) -> tuple[dict[str, tuple[DatasetName, ...]], DatasetName]:
    sandbox = Sandbox(tmp_path, kafka="one:9092,two:9092", more=SERVERS)
    spec = f"sources:\n{sources}\ntransform: transform.sql\nsink: {sink}\n"
    pipeline = sandbox.pipeline("p", spec, transform_sql="SELECT * FROM a")
    return inputs_of(sandbox.project, pipeline), output_of(sandbox.project, pipeline)


def test_topics_and_tables_of_a_database(tmp_path: Path) -> None:
    read, written = _pipeline(
        tmp_path,
        '  a: {format: kafka, options: {subscribe: "x, y"}, schema: "id INT"}',
        '{format: postgres, table: public.sums, schema: "id INT"}',
    )
    assert read["a"] == (DatasetName("kafka://one:9092", "x"), DatasetName("kafka://one:9092", "y"))
    assert written == DatasetName("postgres://db.example.org:5433", "warehouse.public.sums")


def test_a_bucket_beside_the_storage_root_and_a_topic_as_sink(tmp_path: Path) -> None:
    read, written = _pipeline(
        tmp_path,
        '  a: {format: json, storage: lake, path: "clicks/*/*.json", schema: "id INT"}',
        "{format: kafka, topic: out}",
    )
    assert read["a"] == (DatasetName("s3://lake", "raw/clicks"),)
    assert written == DatasetName("kafka://one:9092", "out")


def test_without_configuration_nothing_is_sent(tmp_path: Path) -> None:
    assert destination(Sandbox(tmp_path).project, {}) is None


def test_project_before_environment_before_airflows_provider(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, more="lineage: {url: 'https://one.example', api_key: '${KEY_OF_TEST:-}'}\n")
    project = replace(
        sandbox.project,
        airflows_lineage=SecretStr(json.dumps({"transport": {"type": "console"}, "namespace": "theirs"})),
    )
    environment = {"OPENLINEAGE_URL": "https://two.example", "OPENLINEAGE_NAMESPACE": "of-environment"}
    first = destination(project, environment)
    assert first is not None
    assert (first.config["transport"]["url"], first.namespace) == ("https://one.example", "of-environment")
    without = replace(project, lineage=project.lineage.model_copy(update={"url": None}))
    second = destination(without, environment)
    assert second is not None
    assert (second.config, second.shown) == ({}, "https://two.example")
    third = destination(without, {})
    assert third is not None
    assert (third.config["transport"], third.namespace) == ({"type": "console"}, "theirs")
    assert destination(project, {"OPENLINEAGE_DISABLED": "true"}) is None


def test_a_file_of_the_project_configures_the_client(tmp_path: Path) -> None:
    project = Sandbox(tmp_path).project
    (tmp_path / "openlineage.yml").write_text("transport: {type: console}\n")
    found = destination(project, {})
    assert found is not None
    assert found.config == {"transport": {"type": "console"}}


def test_the_key_is_in_no_repr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_TEST", "hush-hush")
    sandbox = Sandbox(tmp_path, more="lineage: {url: 'https://one.example', api_key: '${KEY_OF_TEST}'}\n")
    found = destination(sandbox.project, {})
    assert found is not None
    assert found.config["transport"]["auth"]["apiKey"] == "hush-hush"
    assert "hush-hush" not in f"{found!r} {sandbox.project!r}"


@pytest.mark.parametrize(
    ("lineage", "id"),
    [
        ("{url: 'https://x', api_key: plain}", "spec.secret"),
        ("{url: 'https://x', file: y}", "spec.contradiction"),
        ("{url: 'https://x', api_key: '${HOME}', connection: c}", "spec.contradiction"),
        ("{url: 'https://me:word@x'}", "spec.wrong-value"),
        ("{file: 's3://lake/x'}", "spec.wrong-value"),
    ],
)
def test_a_destination_that_makes_no_sense_is_refused(tmp_path: Path, lineage: str, id: str) -> None:
    Sandbox(tmp_path, more=f"lineage: {lineage}\n")
    with pytest.raises(SpecError) as caught:
        load_project(tmp_path)
    assert caught.value.id == id


def test_the_id_of_a_run_in_events_is_always_the_same_and_sorts_by_time() -> None:
    ids = [event_run_id(f"20260131T0930{second:02}250-1a2b3c4d") for second in range(3)]
    assert ids == sorted(set(ids))
    assert ids[0] == event_run_id("20260131T093000250-1a2b3c4d")
    assert uuid.UUID(event_run_id("of-another-form"))


def test_the_parent_is_that_of_the_origin_else_of_the_environment() -> None:
    id = str(uuid.uuid4())
    assert ParentRun.of(f"http://airflow/a.b/{id}") == ParentRun("http://airflow", "a.b", id)
    facet = parent_facet({"lineage_parent": f"n/dag.task/{id}", "lineage_root": f"n/dag/{id}"}, {})
    assert facet is not None
    assert (facet.job.name, facet.run.runId) == ("dag.task", id)
    assert facet.root is not None
    assert facet.root.job.name == "dag"
    assert parent_facet({}, {"OPENLINEAGE_PARENT_ID": f"n/dbt/{id}"}) is not None
    assert parent_facet({}, {"OPENLINEAGE_PARENT_ID": "nonsense"}) is None


def test_events_wait_in_the_order_of_their_times_in_private_files(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "lineage")
    spool.add("second", 2)
    spool.add("first", 1)
    assert [each.read_text() for each in spool.waiting()] == ["first", "second"]
    assert {each.stat().st_mode & 0o777 for each in spool.waiting()} == {0o600}
    with spool.sending() as ours, spool.sending() as theirs:
        assert (ours, theirs) == (True, False)
    assert spool.drop_oldest() == 0
