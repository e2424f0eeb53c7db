"""Set-up and the locks it works from: what each step ends with when it cannot be done."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from dev import lock, test_programs
from drawdown.errors import MachineError
from drawdown.jvm import own_jar
from drawdown.jvm.ivy import Ivy
from drawdown.sources.kafka.spark_values import read_value
from tests.support.spec_folders import SpecFolders

ROOT = Path(lock.__file__).parents[1]
JAVA = "#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n"
AVRO = """
sources:
  departures:
    {format: kafka, value: avro, schema: schemas/departures.avsc, options: {subscribe: departures}}
transform: transform.sql
sink: {format: delta, path: tables/hourly, schema: schemas/hourly.ddl}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout that is set up for the first time, with a Java and no apt-get on the PATH of `set_up`."""
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text(JAVA)
    java.chmod(0o755)
    sources = tmp_path / "include" / "drawdown"
    for room in ("dev", "include/drawdown/jvm", "include/drawdown/processes"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__", "*.txt"))
    for name in ("__init__.py", "errors.py"):
        shutil.copy(ROOT / "include" / "drawdown" / name, sources / name)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "requirements.txt").write_text("uv==0.1\n")
    return tmp_path


def set_up(project: Path, without: str = "nothing") -> subprocess.CompletedProcess[str]:
    """`make setup` of this project, by a Python that has no module `without`."""
    (project / "bin" / "sitecustomize.py").write_text(f"import sys\nsys.modules[{without!r}] = None\n")
    bin = str(project / "bin")
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return subprocess.run(
        [sys.executable, project / "dev" / "bootstrap.py"],
        env={**environment, "PATH": bin, "PYTHONPATH": bin},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_python_that_makes_no_environments_names_the_package_to_install(project: Path) -> None:
    failed = set_up(project, without="ensurepip")
    assert (failed.returncode, failed.stderr.split(":")[0]) == (8, "setup.no-venv")
    assert f"apt-get install python3.{sys.version_info.minor}-venv" in failed.stderr
    assert not (project / ".venv").exists()


def test_requirements_that_do_not_pin_the_installer_are_written_anew(project: Path) -> None:
    (project / "requirements.txt").write_text("uvloop==1.0\n")
    python = project / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    failed = set_up(project)
    assert (failed.returncode, failed.stderr.split(":")[0]) == (8, "setup.requirements")
    assert failed.stderr.endswith("do:    make lock\n")
    assert not (project / ".venv" / "drawdown-setup.json").exists()


def test_an_installer_that_is_not_the_one_that_was_locked_is_not_installed(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "uv-0.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("uv.py", "raise SystemExit('somebody else has made this')")
        archive.writestr("uv-0.1.dist-info/METADATA", "Metadata-Version: 2.1\nName: uv\nVersion: 0.1\n")
        archive.writestr("uv-0.1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("uv-0.1.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    (project / "requirements.txt").write_text(f"uv==0.1 \\\n    --hash=sha256:{'0' * 64}\n")
    failed = set_up(project)
    assert (failed.returncode, failed.stderr.split(":")[0]) == (8, "setup.packages")
    assert "DO NOT MATCH THE HASHES" in (project / ".drawdown" / "logs" / "setup.log").read_text()
    assert not list((project / ".venv").glob("lib/python*/site-packages/uv.py"))
    assert not (project / ".venv" / "drawdown-setup.json").exists()


def test_without_pyspark_the_command_that_installs_it_is_named() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'include')!r})\n"
        "from drawdown.jvm.spark_home import spark_home\n"
        "spark_home()"
    )
    failed = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    assert failed.returncode == 1
    assert "spark.missing: pyspark is not installed\n  do:    make setup" in failed.stderr


def test_requirements_that_contradict_each_other_leave_the_lock_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    (tmp_path / "requirements.in").write_text("numpy==1.0\nnumpy==2.0\n")
    (tmp_path / "requirements.txt").write_text("# as it was")
    with pytest.raises(MachineError, match="numpy") as caught:
        lock.lock_requirements(tmp_path)
    assert caught.value.id == "lock.requirements"
    assert caught.value.where == str(tmp_path / "requirements.in")
    assert (tmp_path / "requirements.txt").read_text() == "# as it was"


def test_a_repository_that_does_not_answer_leaves_the_lock_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", "http://127.0.0.1:1/")
    proxy = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", proxy)  # for the other repositories that Spark asks
    monkeypatch.setattr(lock, "CONNECTOR_COORDINATES", ("org.example:nowhere:1.0",))
    (tmp_path / "jars.lock").write_text("# as it was")
    with pytest.raises(MachineError, match=r"org\.example#nowhere;1\.0: not found") as caught:
        lock.lock_jars(tmp_path / "jars.lock")
    assert caught.value.id == "jars.unreachable"
    assert "DEFAULT_ARTIFACT_REPOSITORY" in caught.value.do
    assert (tmp_path / "jars.lock").read_text() == "# as it was"


def test_a_jar_that_ivy_keeps_in_another_way_is_not_guessed_at(tmp_path: Path) -> None:
    for folder in ("jars", "cache/org.example/thing/bundles"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "org.example_thing-1.0.jar").touch()
    with pytest.raises(MachineError, match=r"org\.example_thing-1\.0\.jar") as caught:
        lock._locked("jars", [tmp_path / "jars" / "org.example_thing-1.0.jar"])
    assert caught.value.id == "lock.unknown-jar"
    assert caught.value.where == str(tmp_path / "cache")


def test_avro_without_its_jar_is_told_before_spark_is_asked(tmp_path: Path) -> None:
    folders = SpecFolders(tmp_path)
    folder = folders.add(pipeline=AVRO)
    (folder / "schemas" / "departures.avsc").write_text("{}")
    with Ivy(tmp_path / "ivy") as spark:  # a JVM with what pyspark brings, and nothing that set-up fetches
        session = SimpleNamespace(_jvm=spark._gateway.jvm)
        with pytest.raises(MachineError) as caught:
            read_value(session, folders.load(), "departures")
    assert caught.value.id == "jars.no-avro"
    assert caught.value.do.startswith("make setup")


def test_java_that_does_not_compile_makes_no_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jvm").mkdir()
    (tmp_path / "jvm" / "Broken.java").write_text("package drawdown; class Broken extends NobodyWroteThis {}")
    monkeypatch.setattr(own_jar, "SOURCES", tmp_path / "jvm")
    (tmp_path / ".drawdown").mkdir()
    for folder in ("jars", "object-storage-jars", "google-storage-jars"):
        (tmp_path / ".drawdown" / folder).symlink_to(Path.cwd() / ".drawdown" / folder)
    with pytest.raises(MachineError, match="NobodyWroteThis") as caught:
        own_jar.make_own_jar(tmp_path)
    assert caught.value.id == "setup.own-jar"
    assert not own_jar.is_made(tmp_path)


@pytest.mark.parametrize(
    ("packages", "id"), [*zip(test_programs.PACKAGES, ["tests.no-providers", "tests.no-moto"], strict=True)]
)
def test_packages_of_tests_that_cannot_be_fetched_are_tried_again_next_time(
    packages: test_programs.PackageFolder, id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    here = dataclasses.replace(packages, folder=tmp_path / "packages")
    for _ in range(2):
        with pytest.raises(MachineError) as caught:
            here.install(tmp_path / "setup.log")
        assert caught.value.id == id
    assert "network" in (tmp_path / "setup.log").read_text()
