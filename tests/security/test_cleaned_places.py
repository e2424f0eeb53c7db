"""`cleanSource` touches no file that belongs to something else, whatever the path and whatever lies in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.spec import iter_pipelines, load_project
from drawdown.spec.loader import refusal_beside_others
from tests.support.sandbox import Sandbox
from tests.support.spec_folders import SpecFolders

VICTIM = """
sources:
  rows: {format: json, path: landing/victim, schema: "id INT"}
transform: transform.sql
sink: {format: delta, path: tables/victim, schema: "id INT"}
state: {partitions: 1}
"""
ATTACK = """
sources:
  rows: {{format: text, path: "{path}", options: {options}}}
transform: transform.sql
sink: {{format: delta, path: out/attack, schema: "value STRING"}}
state: {{partitions: 1}}
"""
DELETE = "{cleanSource: delete}"
PATHS = {
    "the log of a table": ("tables/victim/_delta_log", "spec.cleaned-place"),
    "a pattern of it": ("tab?es/*/_delta_log", "spec.cleaned-place"),
    "braces around it": ("{tables/victim,landing/x}/_delta_log", "spec.cleaned-place"),
    "a bracket": ("tables/[v]ictim", "spec.cleaned-place"),
    "the folder around it": ("tables", "spec.cleaned-place"),
    "a table that may come later": ("tables/later/*", "spec.not-landing"),
    "the quarantine": ("quarantin?/victim", "spec.cleaned-place"),
    "a landing folder of another": ("landing/v*", "spec.cleaned-source"),
    "no landing folder": ("incoming/mine", "spec.not-landing"),
}
CHECKPOINTS = (
    "_drawdown/victim/checkpoint-1/offsets",
    "_drawdow?/victim/checkpoint-1/offsets",
    "_drawdow[n]/victim/checkpoint-1/offsets",
    "{_drawdown,x}/victim/checkpoint-1/offsets",
    "*/victim/checkpoint-1/offsets",
)


def _attack(path: str, options: str = DELETE) -> str:
    return ATTACK.format(path=path, options=options)


@pytest.fixture
def folders(tmp_path: Path) -> SpecFolders:
    folders = SpecFolders(tmp_path)
    _write(folders, "victim", VICTIM)
    return folders


def _write(folders: SpecFolders, name: str, spec: str) -> None:
    folder = folders.root / "include" / "pipelines" / name
    folder.mkdir(exist_ok=True)
    (folder / "pipeline.yaml").write_text(spec)
    (folder / "transform.sql").write_text("SELECT * FROM rows")


def _found(folders: SpecFolders) -> dict[str, str]:
    return {
        each.where.split("/")[2]: each.id
        for each in iter_pipelines(folders.project)
        if isinstance(each, SpecError)
    }


@pytest.mark.capability("SAFE-04")
@pytest.mark.parametrize(("path", "id"), PATHS.values(), ids=PATHS.keys())
def test_a_path_that_can_reach_what_is_not_its_own_is_not_cleaned(
    folders: SpecFolders, path: str, id: str
) -> None:
    _write(folders, "attack", _attack(path))
    assert _found(folders) == {"attack": id}
    error = refusal_beside_others(folders.project, "attack")
    assert error is not None
    assert error.do


@pytest.mark.capability("SAFE-04")
@pytest.mark.parametrize("path", CHECKPOINTS)
@pytest.mark.parametrize("options", [DELETE, "{}"])
def test_no_source_reads_checkpoints(folders: SpecFolders, path: str, options: str) -> None:
    _write(folders, "attack", _attack(path, options))
    assert _found(folders) == {"attack": "spec.wrong-path"}


@pytest.mark.capability("SAFE-04")
@pytest.mark.parametrize(
    "archive", ["tables/victim/_delta_log", "tables/victim", "tables", "landing/victim", "quarantine/victim"]
)
def test_an_archive_lies_in_nothing_of_another(folders: SpecFolders, archive: str) -> None:
    options = f"{{cleanSource: archive, sourceArchiveDir: {archive}}}"
    _write(folders, "attack", _attack("landing/attack", options))
    assert set(_found(folders)) == {"attack"}


@pytest.mark.capability("SAFE-04")
def test_the_folder_to_add_is_in_the_error(folders: SpecFolders) -> None:
    _write(folders, "attack", _attack("incoming/{east,west}/2024-*"))
    error = refusal_beside_others(folders.project, "attack")
    assert error is not None
    assert "add `landing: [landing, incoming]` to include/project.yaml" in error.do
    folders.project_file.write_text(folders.project_file.read_text() + "landing: [landing, incoming]\n")
    assert _found(folders) == {}
    folders.project_file.write_text(
        folders.project_file.read_text().replace("landing, incoming", "_drawdown")
    )
    with pytest.raises(SpecError) as caught:
        load_project(folders.root)
    assert caught.value.id == "spec.wrong-path"


@pytest.mark.capability("SAFE-04")
@pytest.mark.parametrize(
    "path", ["include/pipelines/*", ".drawdown/logs", "metastore.db", "in*/pipelines", "{dags,x}"]
)
def test_no_source_reads_the_project_itself(folders: SpecFolders, path: str) -> None:
    folders.project_file.write_text("storage_root: .\nmetastore: sqlite:///metastore.db\n")
    _write(folders, "attack", _attack(path, "{}"))
    assert _found(folders) == {"attack": "spec.reserved-path"}


@pytest.mark.capability("SAFE-04")
def test_a_bucket_by_another_name_is_the_same_bucket(folders: SpecFolders) -> None:
    folders.project_file.write_text(
        "storage_root: s3://lake/prod\nlanding: [prod, in]\n"
        "storages:\n  whole: {address: 's3a://lake'}\n  other: {address: 's3://partner'}\n"
    )
    spec = _attack("PATH").replace('path: "', 'storage: whole, path: "')
    for path, id in {
        "prod/tables/victim": "spec.cleaned-place",
        "pro?/_drawdown/victim": "spec.reserved-path",
        "prod/landing/victim": "spec.cleaned-source",
        "out/x": "spec.not-landing",
    }.items():
        _write(folders, "attack", spec.replace("PATH", path))
        assert _found(folders) == {"attack": id}, path
    _write(folders, "attack", spec.replace("PATH", "in/tables/victim").replace("whole", "other"))
    assert _found(folders) == {}


@pytest.mark.capability("SAFE-04")
def test_a_link_in_a_landing_folder_leads_to_no_table(sandbox: Sandbox) -> None:
    sandbox.pipeline("victim", VICTIM, transform_sql="SELECT id FROM rows")
    sandbox.land_json("landing/victim/1.json", [{"id": 1}])
    sandbox.run("victim")
    log = sandbox.storage / "tables/victim/_delta_log"
    before = {file.name: file.read_bytes() for file in log.iterdir() if file.is_file()}
    sandbox.pipeline("attack", _attack("landing/attack/*"), transform_sql="SELECT value FROM rows")
    sandbox.land("landing/attack/own/1.txt", ["one"])
    sandbox.run("attack")
    (sandbox.storage / "landing/attack/linked").symlink_to(log)
    sandbox.land("landing/attack/own/2.txt", ["two"])
    error = sandbox.drain("attack")[0].error
    assert error is not None
    assert error.id == "source.not-its-own"
    assert "tables/victim/_delta_log" in error.what

    (sandbox.storage / "landing/attack/linked").unlink()
    sandbox.run("attack")
    assert not (sandbox.storage / "landing/attack/own/1.txt").exists(), "its own files are cleaned"
    assert {file.name: file.read_bytes() for file in log.iterdir() if file.is_file()} == before


@pytest.mark.capability("SAFE-05")
@pytest.mark.capability("SAFE-04")
def test_a_run_is_refused_before_it_touches_anything(sandbox: Sandbox) -> None:
    sandbox.pipeline("victim", VICTIM, transform_sql="SELECT id FROM rows")
    sandbox.land_json("landing/victim/1.json", [{"id": 1}])
    sandbox.run("victim")
    sandbox.pipeline("attack", _attack("tables/victim/_delta_log"), transform_sql="SELECT value FROM rows")
    before = sandbox.everything()
    for _ in range(2):
        error = sandbox.drain("attack")[0].error
        assert error is not None
        assert error.id == "spec.cleaned-place"
    assert sandbox.everything() == before

    nested = VICTIM.replace("tables/victim", "tables/victim/x").replace("landing/victim", "landing/x")
    sandbox.pipeline("a_newcomer", nested, transform_sql="SELECT id FROM rows")
    sandbox.land_json("landing/x/1.json", [{"id": 9}])
    sandbox.land_json("landing/victim/2.json", [{"id": 2}])
    newcomer, victim = sandbox.drain("a_newcomer", "victim")
    assert newcomer.error is not None
    assert newcomer.error.id == "spec.shared-sink"
    assert "victim ran first" in newcomer.error.what
    assert victim.error is None, "a drain has recorded what it took"
    assert sandbox.delta("tables/victim") == [(1,), (2,)]
