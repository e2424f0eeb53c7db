"""Modules of the project that several pipelines import reach every executor, which has no project folder."""

from __future__ import annotations

import os
import time
import zipfile
from pathlib import Path

import pytest

from drawdown.launch.code_archives import modules
from drawdown.upkeep.leftovers import tidy_machine
from tests.support.command_line import drawdown
from tests.support.sandbox import Sandbox
from tests.support.standalone import StandaloneCluster

pytestmark = pytest.mark.capability("HOST-08")

ON_A_MASTER = """
clusters:
  remote:
    kind: connection
    connection: remote_spark
    conf: {spark.driver.host: 127.0.0.1, spark.driver.bindAddress: 127.0.0.1, spark.executor.memory: 600m}
"""
SPEC = """
sources:
  events: {{format: json, path: landing/events, schema: "id INT"}}
transform: transform.py
sink: {{format: delta, path: tables/events, schema: out.ddl}}
state: {{partitions: 2}}
cluster: {cluster}
"""
RULES = """
import json
from importlib.resources import files

def country(code):
    return json.loads(files("rules").joinpath("countries.json").read_text())[code]
"""
TRANSFORM = """
import os
import sys
from pyspark.sql.functions import udf

import money
from rules import country

@udf("string")
def worded(id):
    return f"{money.euros(id)} {country('de')}"

@udf("string")
def place(_):
    return "|".join([money.__file__, os.getcwd(), *sys.path, os.environ.get("PYTHONPATH", "")])

def transform(sources):
    return sources["events"].withColumn("worded", worded("id")).withColumn("place", place("id"))
"""


def sharing(root: Path, cluster: str, more: str = "") -> Sandbox:
    sandbox = Sandbox(root, more=more)
    include = sandbox.root / "include"
    (include / "money.py").write_text("def euros(cents):\n    return f'{cents / 100:.2f} EUR'\n")
    (include / "rules").mkdir()
    (include / "rules" / "__init__.py").write_text(RULES)
    (include / "rules" / "countries.json").write_text('{"de": "Germany"}')
    ddl = "id INT, worded STRING, place STRING"
    sandbox.pipeline("events", SPEC.format(cluster=cluster), transform_py=TRANSFORM, out_ddl=ddl)
    sandbox.land_json("landing/events/1.json", [{"id": 199}, {"id": 250}])
    return sandbox


def drained(sandbox: Sandbox) -> list[str]:
    """Drain, and return where the workers have the modules from."""
    done = drawdown(sandbox.root, "run", "events", timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = sorted(sandbox.delta("tables/events"))
    assert [row[:2] for row in rows] == [(199, "1.99 EUR Germany"), (250, "2.50 EUR Germany")]
    return [row[2] for row in rows]


@pytest.mark.full
def test_an_executor_without_the_project_imports_its_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = sharing(tmp_path / "project", "remote", ON_A_MASTER)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with StandaloneCluster(tmp_path / "cluster", workers=1) as cluster:
        monkeypatch.setenv("AIRFLOW_CONN_REMOTE_SPARK", cluster.master)
        places = drained(sandbox)
    for place in places:
        assert str(sandbox.root) not in place
        assert ".zip/money.py" in place


def test_a_driver_that_is_its_own_executor_imports_them_from_the_same_archive(tmp_path: Path) -> None:
    sandbox = sharing(tmp_path / "project", "local")
    for place in drained(sandbox):
        assert "/library/modules-" in place.split("|")[0]


def test_an_archive_is_named_by_its_content_and_removed_when_it_is_no_longer_used(tmp_path: Path) -> None:
    sandbox = sharing(tmp_path / "project", "local")
    project, include = sandbox.project, sandbox.root / "include"
    (include / "json.py").write_text("raise SystemExit('not the json of Python')")
    (include / "rules" / "__pycache__").mkdir()
    (include / "rules" / "__pycache__" / "x.pyc").write_bytes(b"x")
    (include / "keys").mkdir()
    (include / "keys" / "private.pem").write_text("not for executors")
    first = modules(project)
    assert first is not None
    with zipfile.ZipFile(first) as archive:
        assert archive.namelist() == ["money.py", "rules/__init__.py", "rules/countries.json"]

    (include / "money.py").touch()
    assert modules(project) == first
    (include / "money.py").write_text("def euros(cents):\n    return 'nothing'\n")
    second = modules(project)
    assert second != first
    assert second is not None

    long_ago = time.time() - project.upkeep.vacuum.delta.total_seconds() - 1
    for each in (first, second):
        os.utime(each, (long_ago, long_ago))
    assert modules(project) == second  # An application takes it.
    # Other tests' runs that were killed leave files on the same machine.
    own = [line for line in tidy_machine(project, dry=True) if str(first.parent) in line]
    assert own == [f"removed {first}, which no application has used for a while"]
    assert first.exists()
    tidy_machine(project, dry=False)
    assert not first.exists()
    assert second.exists()


def test_a_project_without_modules_has_no_archive(tmp_path: Path) -> None:
    assert modules(Sandbox(tmp_path / "project").project) is None
