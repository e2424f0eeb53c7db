"""The wheel in an Airflow of another version than the lock's, with the oldest packages that are allowed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.wheel import ROOT, build_wheel, uv

AIRFLOW = "3.3.0"
EXTRAS = ("airflow", "spark", "quality", "kafka", "postgres")
PARSE = """
import airflow, json, pathlib
from airflow.dag_processing.dagbag import DagBag
bag = DagBag("dags")
pathlib.Path("parsed.json").write_text(json.dumps([airflow.__version__, sorted(bag.dags), bag.import_errors]))
"""


class Installed:
    """A new environment and a folder to work in; nothing of this checkout is on its path."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        self._bin = folder / "environment" / "bin"
        uv("venv", "--python", sys.executable, str(folder / "environment"))
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        ranges = [*project["dependencies"], *(r for e in EXTRAS for r in project["optional-dependencies"][e])]
        wheel = f"{build_wheel(folder)}[{','.join(EXTRAS)}]"
        into = ("--python", str(self._bin / "python"), "--resolution", "lowest-direct")
        uv("pip", "install", *into, *ranges, f"apache-airflow=={AIRFLOW}", wheel)

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        home = {"AIRFLOW_HOME": str(self.project / "airflow"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
        done = subprocess.run(
            [str(self._bin / program), *arguments],
            cwd=self.project,
            env={**environment, **home},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done


@pytest.mark.full
@pytest.mark.capability("OWN-01")
def test_the_wheel_runs_a_pipeline_in_an_airflow_of_another_version(tmp_path: Path) -> None:
    installed = Installed(tmp_path)
    installed.run("drawdown", "init", "sales")

    installed.run("python", "-c", PARSE)
    version, dags, errors = json.loads((installed.project / "parsed.json").read_text())
    assert (version, errors) == (AIRFLOW, {})
    assert "sales" in dags

    # The page and the timetable: once, also where a project of before has them in plugins/ too.
    old = installed.project / "airflow" / "plugins" / "drawdown_plugin.py"
    old.parent.mkdir(parents=True, exist_ok=True)
    old.write_text((ROOT / "plugins" / "drawdown_plugin.py").read_text())
    plugins = json.loads(installed.run("airflow", "plugins", "--output", "json").stdout)
    assert [plugin["name"] for plugin in plugins] == ["drawdown"]

    installed.run("drawdown", "jars", "fetch", "--from", str(ROOT / ".drawdown"))
    installed.run("drawdown", "validate")
    installed.run("drawdown", "plan", "sales")
    installed.run("drawdown", "run", "sales")
    [run] = json.loads(installed.run("drawdown", "runs", "--json").stdout)["data"]
    assert (run["state"], run["counts"]["published"]) == ("succeeded", 3)
