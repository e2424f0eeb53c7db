"""Versions outside the supported ranges are refused before anything starts."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from drawdown.versions import OLDEST_PYTHON, SUPPORTED

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def run(folder: Path, package: str, version: str, program: str) -> subprocess.CompletedProcess[str]:
    """A Python that finds this version of a package installed first."""
    metadata = folder / f"{package.replace('-', '_')}-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=folder, capture_output=True, text=True
    )


COMMAND = "from drawdown.cli.main import main; main()"
DAG_FILE = "import drawdown.airflow.factory"
DRIVER = "from drawdown.launch.job import run_job; run_job(lambda stop: print('it ran') or 0)"


@pytest.mark.parametrize(("program", "code"), [(COMMAND, 8), (DAG_FILE, 1), (DRIVER, 8)])
@pytest.mark.parametrize(
    ("package", "version", "said"),
    [("apache-airflow-core", "2.11.0", "Airflow 2.11.0"), ("pyspark", "4.3.0.dev1", "Spark 4.3.0.dev1")],
)
def test_another_version_is_refused(
    tmp_path: Path, package: str, version: str, said: str, program: str, code: int
) -> None:
    done = run(tmp_path, package, version, program)
    assert (done.returncode, done.stdout) == (code, "")
    assert "versions.unsupported" in done.stderr
    assert said in done.stderr
    assert "pip install 'drawdown[" in done.stderr


def test_a_patch_version_that_nobody_has_run_is_taken(tmp_path: Path) -> None:
    done = run(tmp_path, "pyspark", "4.2.9", DRIVER)
    assert (done.returncode, done.stdout) == (0, "it ran\n")


def test_the_check_and_the_package_say_the_same() -> None:
    for package, (_, first, too_new, extra) in SUPPORTED.items():
        name = package.removesuffix("-core")
        [range] = [
            each for each in map(Requirement, PROJECT["optional-dependencies"][extra]) if each.name == name
        ]
        numbers = {".".join(map(str, each)) for each in (first, too_new)}
        assert {each.version for each in range.specifier} == numbers
    assert PROJECT["requires-python"] == ">=" + ".".join(map(str, OLDEST_PYTHON))
