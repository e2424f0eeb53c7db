"""A file that could end Spark's JVM is named and never opened; the others of its batch are read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.application import new_run_id
from drawdown.errors import RefusedError, SourceError, SpecError
from drawdown.metastore import this_process
from drawdown.quarantine.whole_file import FileDecision, decide_file
from drawdown.sources.files.set_aside import read_set_aside
from drawdown.spec import load_pipeline
from drawdown.storage import Storage
from drawdown.testing.servers.kafka import KafkaServer
from drawdown.workspace import Workspace
from tests.support.refusals import refused
from tests.support.replays import replayed
from tests.support.sandbox import Sandbox
from tests.support.topics import Topic

pytestmark = pytest.mark.capability("SAFE-07")

SPEC = """
sources:
  rows:
    format: FORMAT
    path: landing/rows
    SCHEMA
    options: {OPTIONS}
    limits: {record: 256k}
    policy: {oversized: POLICY}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl, time_column: at}
replay: {interval: 1 day, lookback: 1 day}
state: {partitions: 2}
"""
FILES = {
    "out_ddl": "id STRING, at TIMESTAMP",
    "transform_sql": "SELECT id, TIMESTAMP'2026-01-01 12:00:00' AS at FROM rows",
}
FORMATS = {
    "json": ("", '{{"id": "{}"}}\n', "id"),
    "csv": ("header: false", "{}\n", "id"),
    "text": ("", "{}\n", ""),
    "xml": ("rowTag: r", "<r><id>{}</id></r>\n", "id"),
}


def _spec(sandbox: Sandbox, format: str, policy: str = "aside", schema: str = 'schema: "id STRING"') -> None:
    spec = SPEC.replace("FORMAT", format).replace("POLICY", policy).replace("OPTIONS", FORMATS[format][0])
    spec = spec.replace("    SCHEMA\n", "" if format == "text" else f"    {schema}\n")
    files = {**FILES}
    if format == "text":
        files["transform_sql"] = files["transform_sql"].replace("SELECT id", "SELECT value AS id")
    sandbox.pipeline("bombed", spec, **files)


def _land(sandbox: Sandbox, format: str, name: str, *ids: str) -> Path:
    folder = sandbox.storage / "landing/rows"
    folder.mkdir(parents=True, exist_ok=True)
    content = "".join(FORMATS[format][1].format(each) for each in ids).encode()
    target = folder / name
    target.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return target


@pytest.mark.sampled
@pytest.mark.parametrize("format", list(FORMATS))
def test_a_bomb_is_named_and_the_other_files_of_its_batch_are_read(
    tmp_path: Path, spark: SparkSession, format: str
) -> None:
    sandbox = Sandbox(tmp_path, spark)
    _spec(sandbox, format, policy="fail")
    _land(sandbox, format, "1", "one")
    _land(sandbox, format, "2 +%.gz", "two", "x" * 5_000_000)
    _land(sandbox, format, "3", "three", "y" * 300_000)
    error = refused(sandbox, "bombed", "source.oversized", RefusedError)
    assert "2 +%.gz" in error.what

    _spec(sandbox, format)
    run = sandbox.run("bombed")
    assert {notice["id"] for notice in run.notices} == {"source.oversized"}
    assert (run.counts.read, run.counts.balanced) == (1, True)
    assert [row[0] for row in sandbox.delta("tables/out")] == ["one"]
    aside = read_set_aside(Storage.of(sandbox.project), "bombed", "rows")
    assert {each.rpartition("/")[2] for each in aside} == {"2 +%.gz", "3"}

    _land(sandbox, format, "4", "four")
    assert sandbox.run("bombed").notices == []
    assert sorted(row[0] for row in sandbox.delta("tables/out")) == ["four", "one"]


@pytest.mark.full
def test_a_first_run_infers_its_schema_without_the_bomb(tmp_path: Path, spark: SparkSession) -> None:
    sandbox = Sandbox(tmp_path, spark)
    _spec(sandbox, "json", schema="infer_schema: true")
    _land(sandbox, "json", "1[a]", "one")
    (sandbox.storage / "landing/rows/2").write_text(json.dumps({"id": "x" * 300_000, "more": 1}) + "\n")
    sandbox.run("bombed")
    assert [row[0] for row in sandbox.delta("tables/out")] == ["one"]
    kept = Storage.of(sandbox.project).read_bytes("_drawdown/bombed/schema-1/rows.ddl")
    assert kept.decode().split() == ["id", "STRING"]


@pytest.mark.full
def test_state_is_kept_over_a_run_that_sets_a_file_aside(tmp_path: Path, spark: SparkSession) -> None:
    sandbox = Sandbox(tmp_path, spark)
    sandbox.pipeline(
        "bombed",
        """
        sources:
          rows:
            {format: json, path: landing/rows, schema: "id STRING, at TIMESTAMP", limits: {record: 256k},
             watermark: {column: at, delay: 1 hour, late: keep}}
        transform: transform.sql
        sink: {format: delta, path: tables/out, schema: out.ddl, mode: update, keys: [id]}
        state: {partitions: 2}
        """,
        out_ddl="id STRING, n BIGINT",
        transform_sql="SELECT id, count(*) AS n FROM rows GROUP BY id",
    )
    at = "2026-01-01T00:00:00Z"
    for name in ("1", "2", "3"):
        sandbox.land_json(f"landing/rows/{name}", [{"id": "a", "at": at}])
        if name == "2":
            sandbox.land_json("landing/rows/bomb", [{"id": "x" * 300_000, "at": at}])
        run = sandbox.run("bombed")
        assert [notice["id"] for notice in run.notices] == ["source.oversized"] * (name == "2")
    assert sandbox.delta("tables/out") == [("a", 3)]


@pytest.mark.full
def test_a_deep_record_is_malformed_and_the_file_is_read(tmp_path: Path, spark: SparkSession) -> None:
    sandbox = Sandbox(tmp_path, spark)
    _spec(sandbox, "json")
    deep = '{"id": "deep", "more": ' + "[" * 5_000 + "]" * 5_000 + "}"
    sandbox.land("landing/rows/1", ['{"id": "one"}', deep, '{"id": "two"}'])
    run = sandbox.run("bombed")
    assert (run.counts.read, run.counts.malformed, run.counts.balanced) == (3, 1, True)


def test_a_file_that_is_set_aside_leaves_its_planned_batch_and_no_replay_reads_it(
    tmp_path: Path, spark: SparkSession
) -> None:
    sandbox = Sandbox(tmp_path, spark)
    _spec(sandbox, "json")
    _land(sandbox, "json", "1", "one")
    torn = _land(sandbox, "json", "2.gz", "two")
    torn.write_bytes(torn.read_bytes()[:-12] + b"torn")
    error = sandbox.drain("bombed")[0].error
    assert isinstance(error, SourceError)
    assert (error.id, str(torn) in error.what) == ("source.unreadable-file", True)
    planned = (sandbox.storage / "_drawdown/bombed/checkpoint-1/offsets/0").read_bytes()

    with pytest.raises(RefusedError) as unknown:
        _decide(sandbox, "landing/rows/3.gz")
    assert unknown.value.id == "quarantine.no-file"
    assert _decide(sandbox, str(torn)) == ("rows", "landing/rows/2.gz")
    run = sandbox.run("bombed")
    assert (run.counts.read, [notice["id"] for notice in run.notices]) == (1, ["source.oversized"])
    assert "torn, says ada" in run.notices[0]["what"]
    assert (sandbox.storage / "_drawdown/bombed/checkpoint-1/offsets/0").read_bytes() == planned
    assert replayed(sandbox, "2026-01-01", "2026-01-02", "bombed").counts.read == 1

    torn.write_bytes(gzip.compress(b'{"id": "two"}\n'))
    _decide(sandbox, "landing/rows/2.gz", back=True)
    assert replayed(sandbox, "2026-01-01", "2026-01-02", "bombed").counts.read == 2
    assert sorted(row[0] for row in sandbox.delta("tables/out")) == ["one", "two"]
    with sandbox.metastore() as metastore:
        decided = [run for run in metastore.runs("bombed") if run.kind == "quarantine-file"]
        assert [run.origin["why"] for run in decided] == ["torn", "torn"]


def _decide(sandbox: Sandbox, path: str, back: bool = False) -> tuple[str, str]:
    with Workspace.open(sandbox.project) as workspace:
        asked = FileDecision(path, new_run_id(), this_process(), "ada", "torn", back)
        return decide_file(workspace, load_pipeline(sandbox.project, "bombed"), asked)


@pytest.mark.parametrize(
    ("format", "limits", "said"),
    [
        ("xml", "nesting: 3", "nothing at a xml source is measured by it"),
        ("text", "columns: 3", "its limits: record, expansion"),
        ("json", "record: 0k", "limits"),
    ],
)
def test_a_limit_that_measures_nothing_is_refused(
    tmp_path: Path, format: str, limits: str, said: str
) -> None:
    sandbox = Sandbox(tmp_path)
    with pytest.raises(SpecError) as refusal:
        sandbox.pipeline(
            "bombed",
            SPEC.replace("FORMAT", format).replace("POLICY", "aside").replace("OPTIONS", FORMATS[format][0])
            .replace("SCHEMA", "" if format == "text" else 'schema: "id STRING"')
            .replace("record: 256k", limits),
            **FILES,
        )  # fmt: skip
    assert said in str(refusal.value)


KAFKA = """
sources:
  values:
    format: kafka
    value: VALUE
    SCHEMA
    options: {subscribe: VALUE_bombs}
    limits: {LIMITS}
transform: transform.sql
sink: {format: delta, path: tables/VALUE, schema: out.ddl}
state: {partitions: 2}
"""


@pytest.mark.full
@pytest.mark.parametrize("value", ["json", "string"])
def test_values_that_are_too_long_or_too_deep_are_malformed(
    kafka_sandbox: Sandbox, broker: KafkaServer, value: str
) -> None:
    spec = KAFKA.replace("VALUE", value)
    spec = spec.replace("SCHEMA", 'schema: "id STRING"' if value == "json" else "malformed: quarantine")
    spec = spec.replace("LIMITS", "record: 64k, nesting: 10" if value == "json" else "record: 64k")
    kafka_sandbox.pipeline(
        "bombed",
        spec,
        out_ddl="id STRING",
        transform_sql=f"SELECT {'id' if value == 'json' else 'value AS id'} FROM values",
    )
    topic = Topic(broker, f"{value}_bombs")
    deep = '{"id": "deep", "more": ' + "[" * 20 + "]" * 20 + "}"
    topic.write(['{"id": "one"}', json.dumps({"id": "x" * 100_000}), deep, None])
    run = kafka_sandbox.run("bombed")
    assert run.counts.balanced
    if value == "json":
        assert (run.counts.read, run.counts.malformed, run.counts.fed) == (4, 3, 1)
        assert kafka_sandbox.delta("tables/json") == [("one",)]
    else:
        assert (run.counts.read, run.counts.malformed) == (4, 1)
