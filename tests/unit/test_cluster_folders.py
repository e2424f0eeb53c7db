"""Folders of standalone clusters in a state folder that machines share: each machine minds its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from drawdown.errors import MachineError
from drawdown.launch.standalone import cluster_folder
from drawdown.launch.standalone.cluster import Ask, give_up, shut_down, spin_up, standing
from drawdown.launch.standalone.cluster_folder import ClusterFolder, ClusterRecord
from drawdown.launch.standalone.reaper import left_over, reap
from drawdown.processes.identity import started, this_view
from drawdown.spec import Project, StandaloneCluster
from tests.support.sandbox import Sandbox
from tests.support.waiting import until

pytestmark = pytest.mark.capability("SAFE-09")

KEY = "flights.manual__1"
ELSEWHERE = "9b6d3b0e-0000-0000-0000-000000000000 pid:[1]"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(cluster_folder, "_ENDS_WITHIN", 0.3)
    monkeypatch.setattr(cluster_folder, "ASKED_EVERY", 0.1)
    return Sandbox(tmp_path / "project").project


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process of this machine that happens to have the number in a record."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as found:
        yield found
        found.kill()


def made(project: Project, instance: str = "one", **values: object) -> tuple[ClusterFolder, int]:
    """A cluster's folder, and the lock that its supervisor holds."""
    folder = ClusterFolder.of(project.state_dir, KEY, instance)
    lock = folder.make()
    record = ClusterRecord(
        1, 1, "512m", time.time() + 3600, {}, master="spark://10.0.0.1:7077", view=this_view(),
        folder=folder.path.name,
    )  # fmt: skip
    folder.write(replace(record, **values))  # type: ignore[arg-type]
    return folder, lock


def test_a_cluster_of_another_machine_is_neither_signalled_nor_removed_nor_used(
    project: Project, process: subprocess.Popen[bytes]
) -> None:
    for lock_is_seen in (True, False):
        folder, lock = made(project, f"i{lock_is_seen}", view=ELSEWHERE, machine="two", keeper=process.pid)
        if not lock_is_seen:
            os.close(lock)
        assert standing(project, KEY) is None
        assert left_over(project) == {}
        assert reap(project) == []
        with pytest.raises(MachineError) as caught:
            shut_down(project, KEY)
        assert caught.value.id == "cluster.elsewhere"
        assert "on the machine two" in caught.value.what
        assert folder.record() is not None
        assert folder.asked.exists(), "its own supervisor is asked"
        assert process.poll() is None
        folder.note(until=1.0)
        assert reap(project) == [f"cluster {folder.path.name} was past its time: ended"]
        assert process.poll() is None
        if lock_is_seen:
            os.close(lock)


def test_a_later_process_with_the_number_of_a_supervisor_is_not_signalled(
    project: Project, process: subprocess.Popen[bytes]
) -> None:
    ticks = started(process.pid)
    assert ticks is not None
    _, lock = made(project, keeper=process.pid, keeper_started=ticks - 1)
    assert shut_down(project, KEY)
    assert process.poll() is None
    os.close(lock)
    _, lock = made(project, keeper=process.pid, keeper_started=ticks)
    assert shut_down(project, KEY)
    until(lambda: process.poll() is not None, 30)
    os.close(lock)


def test_a_try_that_comes_back_ends_its_own_cluster_alone_and_starts_none_beside_a_later_one(
    project: Project,
) -> None:
    profile = StandaloneCluster(kind="standalone", workers=1)
    by = {"dag_run_id": "manual__1", "task_id": "cluster_up"}
    first = Ask(KEY, profile, 1, {**by, "try_number": 1}, "one")
    later, lock = made(project, "two", asked_by={**by, "try_number": 2})
    made(project, "one", asked_by=first.by)
    give_up(project, first)
    assert later.record() is not None
    with pytest.raises(MachineError, match="a later try of this task has started"):
        spin_up(project, first)
    assert standing(project, KEY) == later.record()
    os.close(lock)


def test_a_record_of_an_older_version_is_ended_by_its_key(project: Project) -> None:
    folder, lock = made(project)
    os.close(lock)
    older = ClusterFolder(folder.path.with_name(folder.path.name.removesuffix("-one")))
    folder.path.rename(older.path)
    older.note(view="", folder="", keeper=None)
    assert shut_down(project, KEY)
    assert not older.path.exists()
