"""Refusals that need neither Spark nor a run: each is brought about by the mistake that it is for."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from dev.deployment import main as bring_up
from drawdown.cli.commands.decisions.quarantine import show
from drawdown.cli.commands.init import init
from drawdown.cli.commands.run import run
from drawdown.drain.listener import listener_of
from drawdown.errors import DrawdownError, SpecError
from drawdown.metastore import Metastore
from drawdown.query.transforms import run_transform
from drawdown.recovery.restore import named_snapshot, restore
from drawdown.recovery.snapshots import take_snapshot
from drawdown.sources.existing_path import existing_path
from drawdown.spec import iter_pipelines, load_project
from drawdown.storage import Storage
from drawdown.testing.cases.case import load_cases
from drawdown.workspace import Generation, Workspace
from tests.support.spec_folders import PIPELINE, PROJECT, SpecFolders

FOLLOWS = PIPELINE.replace(
    "format: csv\n    path: landing/departures\n    schema: schemas/departures.ddl\n"
    "    options: {header: true, maxFilesPerTrigger: 20}",
    "format: delta\n    path: tables/hourly",
).replace("replay: {interval: 1 day, lookback: 2 hours, lookahead: 2 hours}\n", "")


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SpecFolders:
    monkeypatch.chdir(tmp_path)
    return SpecFolders(tmp_path)


def id_of(call: object, *arguments: object, **named: object) -> str:
    """Of the error that a call ends with."""
    assert callable(call)
    with pytest.raises(DrawdownError) as caught:
        call(*arguments, **named)
    assert caught.value.what
    return caught.value.id


def ids(folders: SpecFolders) -> list[str]:
    """Of all pipelines, by name: the name of a sound one, the id of what is wrong with another."""
    return [getattr(each, "id", None) or each.name for each in iter_pipelines(folders.project)]


def test_files_of_a_spec(folders: SpecFolders) -> None:
    folder = folders.add()
    (folder / "schemas/hourly.ddl").write_text(" \n")
    assert id_of(folders.load) == "spec.empty-schema"
    (folder / "pipeline.yaml").write_text("#" * 300_000)
    assert id_of(folders.load) == "spec.file-too-large"
    folders.project_file.write_text("storage_root: 'a?b'\n")
    assert id_of(load_project, folders.root) == "project.storage-root"


@pytest.fixture
def nobody() -> Iterator[Path]:
    """A folder that everybody can look into; who is root may be another user meanwhile."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    user = os.geteuid()
    yield folder
    os.seteuid(user)
    shutil.rmtree(folder)


def test_files_that_this_user_may_not_read(nobody: Path) -> None:
    folders = SpecFolders(nobody)
    (folders.add() / "transform.sql").chmod(0)
    folders.project_file.chmod(0o644)
    if os.geteuid() == 0:
        os.seteuid(65534)
    with pytest.raises(SpecError, match="Permission denied") as caught:
        folders.load()
    assert caught.value.id == "spec.file-unreadable"
    assert caught.value.where == "include/pipelines/hourly/transform.sql"


def test_pipelines_that_contradict_each_other(folders: SpecFolders) -> None:
    folders.add("a", PIPELINE + "group: both\n")
    folders.add("b", PIPELINE.replace("5 * * * *", "6 * * * *") + "group: both\n")
    assert ids(folders) == ["spec.group-schedule"] * 2
    other = folders.root / "include" / "pipelines" / "b" / "pipeline.yaml"
    other.write_text(PIPELINE + "group: both\nairflow: {retries: 0}\n")
    assert ids(folders) == ["spec.group-airflow"] * 2
    folders.add("c", PIPELINE.replace('"5 * * * *"', '["asset:nobody"]'))
    assert ids(folders)[2] == "spec.unknown-asset"


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ("retry_delay: 1 minute", "lease_ttl"),
        ("execution_timeout: 8 days", "upkeep.vacuum"),
        ("execution_timeout: 10 hours", "clusters.local.ttl"),
    ],
)
def test_what_a_pipeline_says_of_its_tasks_fits_the_project(
    folders: SpecFolders, own: str, says: str
) -> None:
    cluster = "clusters: {local: {kind: standalone, workers: 1, worker_memory: 512m, ttl: 9 hours}}\n"
    folders.project_file.write_text(PROJECT + cluster * ("ttl" in says))
    folders.add("a", PIPELINE + f"airflow: {{{own}}}\n")
    with pytest.raises(SpecError, match=says) as caught:
        folders.load("a")
    assert caught.value.id == "spec.contradiction"
    assert caught.value.where.startswith("include/pipelines/a/pipeline.yaml:")


def test_a_stream_over_a_table_that_replays_change(folders: SpecFolders) -> None:
    folders.add("hourly")
    folders.add("follows", FOLLOWS)
    assert "spec.replayed-source" in ids(folders)


def test_what_a_source_of_files_needs(folders: SpecFolders) -> None:
    folders.add("hourly")
    pipeline = folders.load()
    assert id_of(existing_path, folders.project, pipeline, "departures") == "source.missing"
    folder = Path(folders.project.storage_root) / str(pipeline.sources["departures"].path)
    folder.parent.mkdir(parents=True)
    folder.write_text("a file")
    assert id_of(existing_path, folders.project, pipeline, "departures") == "source.not-a-folder"


def test_code_beside_a_pipeline(folders: SpecFolders) -> None:
    folder = folders.add(pipeline=PIPELINE.replace("transform.sql", "transform.py"))
    (folder / "transform.py").write_text("def transfrom(sources):\n    return sources['departures']\n")
    assert id_of(run_transform, None, folders.load(), {}) == "transform.no-function"
    (folder / "listener.py").write_text("import module_that_nobody_wrote\n")
    assert id_of(listener_of, folders.load()) == "listener.raised"
    (folder / "listener.py").write_text("class Listener:\n    def __init__(self, where):\n        pass\n")
    assert id_of(listener_of, folders.load()) == "listener.raised"


def test_commands(folders: SpecFolders) -> None:
    folders.project_file.write_text(PROJECT + "clusters: {local: {kind: local}, wide: {kind: local}}\n")
    folders.add("hourly")
    folders.add("daily", PIPELINE.replace("cluster: local", "cluster: wide"))
    assert id_of(run, ["hourly", "daily"]) == "cli.several-clusters"
    assert id_of(show, "hourly", states=["opened"]) == "quarantine.state"
    (folders.root / "include/pipelines/daily/pipeline.yaml").write_text(
        PIPELINE.replace("tables/departures_hourly", "tables/weekly")
    )
    before = sorted(folders.root.rglob("*"))
    assert id_of(init, "weekly") == "init.sink-taken"
    assert sorted(folders.root.rglob("*")) == before


def test_tests_of_a_pipeline(folders: SpecFolders) -> None:
    case = folders.add() / "tests" / "first"
    case.mkdir(parents=True)
    (case / "case.yaml").write_text("waves: []\n")
    assert id_of(load_cases, folders.load(), "frist") == "test.no-case"


def test_stores(folders: SpecFolders) -> None:
    assert id_of(Storage(str(folders.root)).delete, "") == "storage.delete-root"
    with Metastore.open(f"sqlite:///{folders.root}/metastore.db") as metastore:
        assert id_of(metastore.update_run, "nobody", batches=1) == "run.unknown"


def test_snapshots(folders: SpecFolders) -> None:
    folders.add("hourly")
    with Metastore.open(f"sqlite:///{folders.root}/metastore.db") as metastore:
        generation = Generation.of(Workspace(folders.project, metastore), folders.load())
        assert id_of(named_snapshot, generation, "latest") == "checkpoint.no-snapshot"
        assert id_of(take_snapshot, generation, lambda: None) == "checkpoint.none"


def test_a_snapshot_of_a_checkpoint_that_a_rebuild_has_replaced(folders: SpecFolders) -> None:
    folders.add("hourly")
    with Metastore.open(f"sqlite:///{folders.root}/metastore.db") as metastore:
        lease = metastore.acquire("hourly", "host pid 1", "r1", timedelta(minutes=1))
        metastore.create_checkpoint(lease, 1, "checkpoint-1", {})
        noted = {"generation": 1, "last_batch": 4, "shown": {}, "files": 0, "bytes": 0, "staged": {}}
        rows = metastore.export_generation("hourly", 1)
        manifest = Path(folders.project.storage_root) / "_drawdown/hourly/snapshots/monday/snapshot.json"
        manifest.parent.mkdir(parents=True)
        manifest.write_text(json.dumps({**noted, "rows": rows}))
        metastore.change_generations(lease, {1: {"state": "retired"}})
        metastore.create_checkpoint(lease, 2, "checkpoint-2", {})
        generation = Generation.of(Workspace(folders.project, metastore), folders.load())
        snapshot = named_snapshot(generation, "monday")
        before = sorted(folders.root.rglob("*"))
        assert id_of(restore, generation, snapshot, lambda: lease, sink=True) == "checkpoint.other-generation"
        assert sorted(folders.root.rglob("*")) == before
        assert metastore.active_checkpoint("hourly").generation == 2


def test_a_deployment_without_its_login(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", raising=False)
    assert bring_up() == 8
    assert "deployment.variable" in capsys.readouterr().err
