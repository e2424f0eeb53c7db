"""A drain over a Spark master that is there already, which an Airflow connection names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import drawdown
from tests.support.sandbox import Sandbox
from tests.support.standalone import StandaloneCluster

PROJECT = """
clusters:
  remote:
    kind: connection
    connection: remote_spark
    conf: {spark.driver.host: 127.0.0.1, spark.driver.bindAddress: 127.0.0.1, spark.executor.memory: 600m}
"""
SPEC = """
sources:
  events: {format: json, path: landing/events, schema: "id INT"}
transform: transform.py
sink: {format: delta, path: tables/events, schema: out.ddl}
state: {partitions: 2}
cluster: remote
"""
WHERE_IT_RUNS = """
from pyspark.sql.functions import udf

@udf("string")
def library(_):
    import drawdown
    return drawdown.__file__

def transform(sources):
    return sources["events"].withColumn("library", library("id"))
"""


@pytest.mark.full
def test_a_drain_takes_jars_and_library_along_to_a_master_it_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = Sandbox(tmp_path / "project", more=PROJECT)
    sandbox.pipeline("events", SPEC, transform_py=WHERE_IT_RUNS, out_ddl="id INT, library STRING")
    sandbox.land_json("landing/events/1.json", [{"id": 1}, {"id": 2}])

    refused = drawdown(sandbox.root, "run", "events")
    assert refused.returncode == 2
    assert "connection.missing" in refused.stdout + refused.stderr
    assert "AIRFLOW_CONN_REMOTE_SPARK" in refused.stdout + refused.stderr

    with StandaloneCluster(tmp_path / "cluster", workers=1) as cluster:
        monkeypatch.setenv("AIRFLOW_CONN_REMOTE_SPARK", cluster.master)
        done = drawdown(sandbox.root, "run", "events", timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = sandbox.delta("tables/events")
    assert sorted(row[0] for row in rows) == [1, 2]
    # Executors unpack nothing: Python imports from the archive that came with the application.
    assert all(".zip/drawdown/__init__.py" in row[1] for row in rows)
