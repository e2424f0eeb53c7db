"""What `drawdown init` writes is what this project itself runs on."""

from __future__ import annotations

import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from drawdown.errors import RefusedError
from drawdown.jvm.home import HOME, machine_root
from drawdown.jvm.installation import INSTALLATION
from drawdown.scaffold.project_files import example_files, write_folder, write_project
from drawdown.spec import load_pipelines, load_project

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "file", ["include/project.yaml", "dags/drawdown.py", "jobs/drain.py", "jobs/replay.py", "jobs/rebuild.py"]
)
def test_a_new_project_gets_the_files_of_this_one(tmp_path: Path, file: str) -> None:
    write_project(tmp_path)
    assert (tmp_path / file).read_text() == (ROOT / file).read_text(), (
        f"copy {file} to scaffold/templates/project"
    )


def test_a_new_project_installs_this_version_and_checks_its_pipelines(tmp_path: Path) -> None:
    write_project(tmp_path)
    [line] = [line for line in (tmp_path / "requirements.txt").read_text().splitlines() if line[0] != "#"]
    asked = Requirement(line)
    assert str(asked.specifier) == f"=={version('drawdown')}"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {"airflow", "spark"} <= asked.extras <= set(extras)
    workflow = yaml.safe_load((tmp_path / ".github/workflows/pipelines.yaml").read_text())
    ran = " ".join(step.get("run", "") for step in workflow["jobs"]["pipelines"]["steps"])
    assert [
        verb for verb in ("jars fetch", "validate", "test", "plan") if f"drawdown {verb}" not in ran
    ] == []
    assert ".drawdown/" in (tmp_path / ".gitignore").read_text().splitlines()


def test_what_a_repository_of_airflow_has_already_stays(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("mine\n")
    written = write_project(tmp_path)
    assert (tmp_path / "requirements.txt").read_text() == "mine\n"
    assert tmp_path / "requirements.txt" not in written
    assert tmp_path / ".gitignore" in written


def test_a_new_pipeline_is_valid_and_nothing_is_left_of_its_placeholder(tmp_path: Path) -> None:
    write_project(tmp_path)
    folder = tmp_path / "include/pipelines/sales"
    folder.parent.mkdir()
    write_folder(folder, example_files("sales"))
    [pipeline] = load_pipelines(load_project(tmp_path))
    assert pipeline.sink.path == "tables/sales"
    assert not [path for path in folder.rglob("*") if path.is_file() and "{{" in path.read_text()]
    assert [path.name for path in folder.parent.iterdir()] == ["sales"]


def test_a_project_is_not_written_over_another_file(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/drain.py").write_text("mine")
    with pytest.raises(RefusedError):
        write_project(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["drain.py", "jobs"]


def test_jars_are_taken_from_drawdown_home_the_project_or_the_installation(tmp_path: Path) -> None:
    assert machine_root(tmp_path, {}) == INSTALLATION
    (tmp_path / ".drawdown/jars").mkdir(parents=True)
    assert machine_root(tmp_path, {}) == tmp_path
    assert machine_root(tmp_path, {HOME: "/opt/drawdown"}) == Path("/opt/drawdown")
