"""Deaths that are between no two steps: in a write, between Spark and its commit log, of the JVM alone."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from tests.support.deaths import free_lease, run_apart, start_apart
from tests.support.kill_matrix import (
    KINDS,
    NAME,
    TABLE,
    Kind,
    assert_one_more_run_is_a_no_op,
    ended,
    land,
)
from tests.support.sandbox import Sandbox

# One of two tasks ends the whole run when it has come to a row and the other one's file is there.
DEADLY = """
import os
import signal
import time
from pathlib import Path

from pyspark.sql import functions as F


@F.udf("int")
def seen(id):
    folder = os.environ.get("DIE_BESIDE")
    if folder and id == 1500:
        while not any(file.stat().st_size for file in Path(folder).rglob("*.parquet")):
            time.sleep(0.05)
        os.killpg(os.getsid(0), signal.SIGKILL)
    return id


def transform(sources):
    return sources["numbers"].select(seen("id").alias("id"))
"""
NUMBERS = """
sources: {{numbers: {{format: csv, path: landing/numbers, schema: numbers.ddl}}}}
transform: transform.py
sink: {{schema: numbers.ddl, {sink}}}
state: {{partitions: 2}}
"""
ROWS = 2_000


def numbers(root: Path, spark: SparkSession, kind: Kind) -> Sandbox:
    """Two files, and so two tasks: the first has 1,000 rows of which none is deadly."""
    sandbox = Sandbox(root, spark)
    sandbox.pipeline(NAME, NUMBERS.format(sink=kind.spec), numbers_ddl="id INT", transform_py=DEADLY)
    sandbox.land("landing/numbers/0.csv", map(str, range(1_000)))
    sandbox.land("landing/numbers/1.csv", map(str, range(1_000, ROWS)))
    return sandbox


def data_files(sandbox: Sandbox) -> list[str]:
    return sorted(path.name for path in (sandbox.storage / TABLE).rglob("*.parquet"))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("delta append audited", marks=pytest.mark.fault("F03", "delta")),
        pytest.param("delta append direct", marks=[pytest.mark.full, pytest.mark.fault("F03", "delta")]),
        pytest.param("parquet files", marks=[pytest.mark.full, pytest.mark.fault("F03", "files")]),
    ],
)
def test_what_a_death_in_the_middle_of_a_write_leaves_is_never_seen_and_swept(
    tmp_path: Path, spark: SparkSession, name: str
) -> None:
    kind = KINDS[name]
    sandbox = numbers(tmp_path / "project", spark, kind)
    died = run_apart(sandbox, NAME, DIE_BESIDE=str(sandbox.storage / TABLE))
    assert died.returncode == -signal.SIGKILL, died.stdout
    free_lease(sandbox)
    partial = data_files(sandbox)
    assert partial, "a part of the batch was written"
    assert kind.rows(sandbox) == {}

    run = sandbox.run(NAME)
    assert run.counts.fed == ROWS
    assert kind.rows(sandbox) == dict.fromkeys(((id,) for id in range(ROWS)), 1)
    assert set(partial).isdisjoint(data_files(sandbox)), "swept"
    with sandbox.metastore() as metastore:
        assert [run.state for run in metastore.runs(NAME)] == ["succeeded", "crashed"]
    assert_one_more_run_is_a_no_op(sandbox)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("delta append audited", marks=pytest.mark.fault("F05", "delta")),
        pytest.param("delta append direct", marks=[pytest.mark.full, pytest.mark.fault("F05", "delta")]),
        pytest.param("delta update audited", marks=[pytest.mark.full, pytest.mark.fault("F05", "delta")]),
        pytest.param("delta complete audited", marks=[pytest.mark.full, pytest.mark.fault("F05", "delta")]),
        pytest.param("parquet files", marks=[pytest.mark.full, pytest.mark.fault("F05", "files")]),
    ],
)
def test_a_batch_whose_commit_log_entry_is_gone_is_executed_again_and_written_once(
    tmp_path: Path, spark: SparkSession, name: str
) -> None:
    kind = KINDS[name]
    control = kind.project(tmp_path / "control", spark)
    torn = kind.project(tmp_path / "torn", spark)
    for sandbox in (control, torn):
        land(sandbox, 0)
        sandbox.run(NAME)
    [commits] = torn.storage.glob("_drawdown/*/checkpoint*/**/commits")
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for path in (commits / str(last), commits / f".{last}.crc"):
        path.unlink(missing_ok=True)
    for sandbox in (control, torn):
        land(sandbox, 1)
        sandbox.run(NAME)
    assert ended(kind, torn) == ended(kind, control)
    assert ended(kind, control).rows
    assert_one_more_run_is_a_no_op(torn)


@pytest.mark.fault("F08", "delta")
def test_a_run_whose_jvm_is_killed_ends_within_seconds_with_one_error(
    tmp_path: Path, spark: SparkSession
) -> None:
    kind = KINDS["delta append audited"]
    sandbox = numbers(tmp_path / "project", spark, kind)
    # A folder in which nothing ever appears: the task waits there, and the batch with it.
    process = start_apart(sandbox, NAME, DIE_BESIDE=str(tmp_path))
    while not (tables := data_files(sandbox)) and process.poll() is None:
        time.sleep(0.05)
    assert tables, "the batch is being written"
    [jvm] = [child for child in psutil.Process(process.pid).children() if child.name() == "java"]
    jvm.kill()
    begun = time.monotonic()
    said, _ = process.communicate(timeout=120)
    seconds = time.monotonic() - begun
    assert process.returncode == 8, said
    assert said.count("spark.gone") == 1, said
    assert "Traceback" not in said
    assert "py4j" not in said.lower()
    assert seconds < 45, f"{seconds:.1f} s"
    with sandbox.metastore() as metastore:
        [run] = metastore.runs(NAME)
        assert metastore.holder_of(NAME) is None
    assert (run.state, run.error and run.error["id"]) == ("failed", "spark.gone")
    assert sandbox.run(NAME).counts.fed == ROWS
    assert kind.rows(sandbox) == dict.fromkeys(((id,) for id in range(ROWS)), 1)
