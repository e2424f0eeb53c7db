"""project.yaml is found from below, its references are replaced; pipelines do not contradict each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.spec import Pipeline, iter_pipelines, load_pipelines, load_project
from tests.support.spec_folders import PIPELINE, PROJECT, SpecFolders


@pytest.fixture
def folders(tmp_path: Path) -> SpecFolders:
    return SpecFolders(tmp_path)


def refused(folders: SpecFolders, project: str) -> SpecError:
    folders.project_file.write_text(project)
    with pytest.raises(SpecError) as caught:
        load_project(folders.root)
    return caught.value


def test_relative_paths_become_absolute_and_addresses_stay(folders: SpecFolders) -> None:
    folders.project_file.write_text("storage_root: data\nmetastore: sqlite:///m.db\n")
    project = load_project(folders.root / "include" / "pipelines")
    assert project.root == folders.root
    assert project.storage_root == str(folders.root / "data")
    assert project.metastore_url == f"sqlite:///{folders.root}/m.db"
    folders.project_file.write_text("storage_root: s3://bucket/x\nmetastore: sqlite:////var/m.db\n")
    project = load_project(folders.root)
    assert (project.storage_root, project.metastore_url) == ("s3://bucket/x", "sqlite:////var/m.db")


def test_relative_paths_start_where_the_environment_keeps_state(
    folders: SpecFolders, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders.project_file.write_text("storage_root: data\nmetastore: sqlite:///m.db\n")
    state = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("DRAWDOWN_STATE", str(state))
    project = load_project(folders.root)
    assert (project.root, project.state_dir) == (folders.root, state / ".drawdown")
    assert (project.storage_root, project.metastore_url) == (str(state / "data"), f"sqlite:///{state}/m.db")
    monkeypatch.setenv("DRAWDOWN_STATE", "state")
    with pytest.raises(SpecError) as caught:
        load_project(folders.root)
    assert (caught.value.id, caught.value.where) == ("project.state-folder", "state")


def test_the_environment_names_the_project(
    folders: SpecFolders, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("DRAWDOWN_PROJECT", str(folders.root))
    assert load_project().root == folders.root
    monkeypatch.setenv("DRAWDOWN_PROJECT", str(elsewhere))
    with pytest.raises(SpecError) as caught:
        load_project()
    assert caught.value.id == "spec.no-project"


def test_references_are_replaced_in_values_and_stay_text(
    folders: SpecFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DD_POOL", "a: {b: c}\nretries: 99")
    monkeypatch.setenv("DD_RETRIES", "7")
    monkeypatch.setenv("DD_EMPTY", "")
    folders.project_file.write_text(
        "storage_root: ${DD_UNSET:-x}/${DD_EMPTY:-y}\nairflow:\n  pool: ${DD_RETRIES}\n"
        "  retries: ${DD_RETRIES}\n"
    )
    project = load_project(folders.root)
    assert project.storage_root == str(folders.root / "x" / "y")
    assert (project.airflow.pool, project.airflow.retries) == ("7", 7)
    error = refused(folders, "airflow:\n  pool: ${DD_POOL}\n")
    assert (error.id, error.where) == ("spec.wrong-value", "include/project.yaml:2")


def test_pipelines_come_sorted_and_a_bad_one_does_not_hide_the_others(folders: SpecFolders) -> None:
    for name in ("c", "a"):
        folders.add(name)
    folders.add("b", PIPELINE.replace("tags: [example]", "tags: 5"))
    (folders.root / "include" / "pipelines" / "__pycache__").mkdir()
    found = [each.name if isinstance(each, Pipeline) else each.id for each in iter_pipelines(folders.project)]
    assert found == ["a", "spec.wrong-type", "c"]
    with pytest.raises(SpecError, match="tags"):
        load_pipelines(folders.project)


def test_a_group_has_one_schedule(folders: SpecFolders) -> None:
    folders.add("a", "group: g\n" + PIPELINE)
    folders.add("b", "group: g\n" + PIPELINE.replace("5 * *", "6 * *"))
    folders.add("c")
    a, b, c = iter_pipelines(folders.project)
    assert isinstance(a, SpecError)
    assert isinstance(b, SpecError)
    assert isinstance(c, Pipeline)
    assert a.where == "include/pipelines/a/pipeline.yaml and include/pipelines/b/pipeline.yaml"


def test_two_pipelines_never_share_a_sink(folders: SpecFolders) -> None:
    folders.add("a")
    folders.add("b", PIPELINE.replace("tables/departures_hourly", "tables/a/inside"))
    with pytest.raises(SpecError) as caught:
        load_pipelines(folders.project)
    assert caught.value.id == "spec.shared-sink"


def test_files_that_another_source_reads_are_not_cleaned(folders: SpecFolders) -> None:
    cleaned = PIPELINE.replace("header: true,", "header: true, cleanSource: delete,", 1)
    folders.add("cleaner", cleaned.replace("tables/", "tables/c/"))
    folders.add("reader")
    cleaner, reader = iter_pipelines(folders.project)
    assert isinstance(cleaner, SpecError)
    assert cleaner.id == "spec.cleaned-source"
    assert "source departures of reader reads landing/departures too" in cleaner.what
    assert isinstance(reader, Pipeline)


def test_an_asset_must_be_another_pipeline(folders: SpecFolders) -> None:
    folders.add("flights", PIPELINE.replace('"5 * * * *"', "none"))
    folders.add("hourly", PIPELINE.replace('"5 * * * *"', "[asset:flihgts]"))
    with pytest.raises(SpecError, match="'flights'"):
        load_pipelines(folders.project)


@pytest.mark.parametrize("name", ["absent", "", "..", "../x", "A", "a/b", "-a", "a" * 64, "a\n"])
def test_what_is_no_pipeline_is_one_error(folders: SpecFolders, name: str) -> None:
    with pytest.raises(SpecError) as caught:
        folders.load(name)
    assert caught.value.id in ("spec.no-pipeline", "spec.pipeline-name")


def test_the_projects_own_file_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAWDOWN_STORAGE", raising=False)
    project = load_project(Path(__file__))
    assert project.brokers["default"].security_protocol == "PLAINTEXT"
    assert list(project.clusters) == ["local"]
    assert [pipeline.name for pipeline in load_pipelines(project)]


def test_the_shortest_project_file_has_defaults(folders: SpecFolders) -> None:
    folders.project_file.write_text(PROJECT)
    assert folders.project.lease_ttl.text == "60 seconds"
