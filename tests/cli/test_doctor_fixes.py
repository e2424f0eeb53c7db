"""The command that `drawdown doctor` names is typed, and the finding is gone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from drawdown.launch.standalone.cluster_folder import MARK, ClusterFolder, ClusterRecord
from drawdown.metastore.records import Run
from tests.support import clusters
from tests.support.command_line import answer, drawdown
from tests.support.doctored import doctored
from tests.support.sandbox import Sandbox
from tests.support.small_disk import small_disk
from tests.support.spark import ROOT

pytestmark = pytest.mark.timeout(300)

SPEC = """
sources: {events: {format: json, path: landing/events, schema: events.ddl}}
transform: transform.sql
sink: {format: delta, path: tables/events, schema: events.ddl}
state: {partitions: 2}
"""


def sandbox(root: Path) -> Sandbox:
    made = Sandbox(root)
    made.pipeline("events", SPEC, events_ddl="id BIGINT", transform_sql="SELECT id FROM events")
    made.land_json("landing/events/1.json", [{"id": 1}])
    return made


def test_storage_that_this_user_may_not_write(tmp_path: Path) -> None:
    made = sandbox(tmp_path / "project")
    made.storage.chmod(0o500)
    # To the kernel root is anybody else once it has given its capabilities up.
    plain = ["setpriv", "--bounding-set=-all"] if os.geteuid() == 0 else []
    [before, after] = doctored(made.root, "storage", inside=plain)
    assert (before["level"], before["do"]) == ("fail", f"chmod -R u+rwX {made.storage}")
    assert "cannot be written" in before["what"]
    assert after["level"] == "ok"


@pytest.mark.full
def test_a_machine_whose_loopback_interface_is_down(tmp_path: Path) -> None:
    [before, after] = doctored(sandbox(tmp_path / "project").root, "ports", inside=["unshare", "--net"])
    assert (before["level"], after["level"]) == ("fail", "ok")


@pytest.mark.full
@pytest.mark.parametrize(("about", "variable"), [("java", "JAVA_HOME"), ("jars", "DRAWDOWN_HOME")])
def test_a_variable_that_leads_nowhere(tmp_path: Path, about: str, variable: str) -> None:
    made = sandbox(tmp_path / "project")
    found = doctored(made.root, about, inside=["env", f"{variable}={tmp_path}"])
    assert [each["level"] for each in found] == ["fail", "ok"]


@pytest.mark.full
def test_a_run_that_died_and_whose_lease_nobody_holds(tmp_path: Path) -> None:
    made = sandbox(tmp_path / "project")
    with made.metastore() as metastore:
        metastore.start_run(Run("r1", "events", holder="elsewhere pid 1"))
    [before] = doctored(made.root, "leases")
    assert (before["level"], "r1" in before["what"]) == ("warn", True)
    assert made.delta("tables/events") == [(1,)]
    with made.metastore() as metastore:
        assert [run.state for run in metastore.runs("events")] == ["succeeded", "crashed"]


@pytest.mark.full
def test_a_little_disk_and_a_cluster_that_nobody_will_end(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk"):
        made = sandbox(tmp_path / "disk" / "project")
        made.storage.joinpath("landing/events/1.json").unlink()
        folder = ClusterFolder.of(made.project.state_dir, "events.manual", "0a1b2c3d")
        os.close(folder.make())
        folder.write(ClusterRecord(1, 1, "512m", until=1.0, asked_by={}))
        daemon = subprocess.Popen(["sleep", "1000"], env={**os.environ, MARK: str(folder.path)})
        try:
            found = answer(drawdown(made.root, "doctor", "--json").stdout)
            disk = next(each for each in found if each["about"] == "disk")
            assert disk["level"] == "warn"
            dry = drawdown(made.root, "upkeep", "--all", "--dry-run")
            assert "had lost its supervisor" in dry.stdout
            [before] = doctored(made.root, "clusters")
            assert str(folder.path) in before["what"]
            assert before["do"] == disk["do"]
            assert daemon.wait(60) < 0
        finally:
            daemon.kill()
            daemon.wait()
        clusters.until_nothing_is_left(made.root)


def test_a_broker_that_is_not_there_has_a_target_of_make(tmp_path: Path) -> None:
    root = sandbox(tmp_path / "project").root
    # What makes it a checkout, which has the target.
    services = root / "dev/services.py"
    services.parent.mkdir()
    services.touch()
    found = answer(drawdown(root, "doctor", "--json").stdout)
    [(level, do)] = [(each["level"], each["do"]) for each in found if each["about"] == "broker"]
    assert level == "warn"
    only_said = {**os.environ, "MAKEFLAGS": "n"}
    subprocess.run(do, shell=True, check=True, cwd=ROOT, env=only_said)
