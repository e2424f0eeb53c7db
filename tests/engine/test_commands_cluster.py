"""Clusters that programs of the project start: whatever happens, `down` is called in the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from drawdown.errors import DrawdownError, MachineError, SpecError
from drawdown.launch.commands.cluster import attended, settings_of, shut_down, spin_up, standing
from drawdown.launch.commands.reaper import end_overdue
from drawdown.launch.commands.request import CommandsRequest, Programs
from drawdown.launch.loss import explain_loss
from drawdown.metastore import Metastore
from drawdown.metastore.records import StartedCluster
from drawdown.testing.servers.postgres import PostgresServer
from tests.support.cellar import (
    KEY,
    PROFILE,
    SECRET,
    Cellar,
    listening,
    of_the_docs,
    prints,
    state_of,
)
from tests.support.clock import clock_ahead
from tests.support.command_line import CommandLine, drawdown
from tests.support.sandbox import Sandbox, multiset
from tests.support.slow import slow_transform
from tests.support.waiting import until

pytestmark = pytest.mark.capability("HOST-13")

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: "id INT, k STRING", options: {maxFilesPerTrigger: 1}}
transform: transform.py
sink: {format: delta, path: tables/counts, schema: out.ddl, mode: update, keys: [k]}
state: {partitions: 2}
cluster: cellar
"""
COUNTED = '.groupBy("k").count().withColumnRenamed("count", "n")'
ROWS = [{"id": i, "k": "abcde"[i % 5]} for i in range(24)]


@pytest.fixture
def cellar(tmp_path: Path) -> Cellar:
    return Cellar(tmp_path / "project")


def counting(root: Path, workers: int = 1, seconds: float = 0.0) -> Sandbox:
    """A pipeline over a cluster that the programs of the docs start."""
    sandbox = Sandbox(root, more=PROFILE.format(workers=workers, more="shared_disk: true"))
    of_the_docs(root)
    transform = slow_transform("events", "k", "string", seconds, COUNTED)
    sandbox.pipeline("counts", SPEC, transform_py=transform, out_ddl="k STRING, n BIGINT")
    for file in range(2):
        sandbox.land_json(f"landing/events/{file}.json", ROWS[file * 12 : (file + 1) * 12], mtime=file + 1)
    return sandbox


def daemons(root: Path) -> list[int]:
    """Process ids of all that the programs of the docs have started for a project."""
    mark = f"{state_of(root)}/".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def pids(root: Path) -> dict[str, str]:
    """What the programs of the docs have written down: the process of each daemon."""
    found = state_of(root).glob("*/*.pid")
    return {file.stem: file.read_text() for file in found}


def until_nothing_is_left(sandbox: Sandbox) -> None:
    until(lambda: not daemons(sandbox.root), 120)
    with sandbox.metastore() as metastore:
        until(lambda: not metastore.clusters.standing(), 60)
    assert list(state_of(sandbox.root).iterdir()) == []


@pytest.mark.full
def test_the_programs_of_the_docs_start_a_cluster_for_a_run_and_its_cost_is_what_they_bill(
    tmp_path: Path,
) -> None:
    sandbox = counting(tmp_path / "project")
    done = drawdown(sandbox.root, "run", "counts", timeout=400)
    assert done.returncode == 0, done.stderr
    assert multiset(sandbox.delta("tables/counts")) == multiset(Counter(row["k"] for row in ROWS).items())
    until_nothing_is_left(sandbox)
    with sandbox.metastore() as metastore:
        [run] = metastore.runs("counts")
        [application] = metastore.applications.since(run.started_at - timedelta(hours=1))[0]
    driver = sandbox.project.clusters["cellar"]
    assert application.cores == driver.cores + 1
    assert application.memory == driver.memory_bytes + 2**30, (
        "1 GiB was billed, and 600 MB are the executor's"
    )


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_killed_command_and_a_lost_master_leave_nothing_and_the_next_run_goes_on(tmp_path: Path) -> None:
    sandbox = counting(tmp_path / "project", seconds=0.5)
    with CommandLine(sandbox.root, "run", "counts", DRAWDOWN_STOP_GRACE="5") as command:
        command.until(lambda line: "counts: batch 0:" in line)
        os.kill(command.pid, signal.SIGKILL)
    until_nothing_is_left(sandbox)

    with sandbox.metastore() as metastore:
        until(lambda: metastore.holder_of("counts") is None, 200)
    # A run that needs half a minute more does not end before the loss is noticed.
    for file in range(2, 7):
        sandbox.land_json(f"landing/events/{file}.json", ROWS[:12], mtime=file + 1)
    with CommandLine(sandbox.root, "run", "counts") as command:
        command.until(lambda line: "counts: batch 1:" in line)
        [folder] = state_of(sandbox.root).iterdir()
        os.kill(int((folder / "master.pid").read_text()), signal.SIGKILL)
        killed = time.monotonic()
        assert command.ended(300) == 8, "".join(command.said)
        assert time.monotonic() - killed < 60
    said = "".join(command.said)
    assert "cluster.lost" in said
    assert "`alive` ended with exit code 1" in said
    until_nothing_is_left(sandbox)

    done = drawdown(sandbox.root, "run", "counts", timeout=400)
    assert done.returncode == 0, done.stderr
    expected = Counter(row["k"] for row in [*ROWS, *ROWS[:12] * 5])
    assert multiset(sandbox.delta("tables/counts")) == multiset(expected.items())
    until_nothing_is_left(sandbox)


@pytest.mark.full
def test_up_of_the_docs_finds_the_cluster_that_it_has_started(tmp_path: Path) -> None:
    sandbox = counting(tmp_path / "project")
    project = sandbox.project
    request = CommandsRequest(project, "cellar", project.clusters["cellar"], KEY, 1, {})  # type: ignore[arg-type]
    try:
        first = spin_up(request)
        before = pids(sandbox.root)
        assert len(before) == 2
        again = Programs(project, first).up(lambda: False)
        assert (again.model_dump(), pids(sandbox.root)) == (first.answer, before)
        assert standing(project, KEY) == first
        second = spin_up(request)
        assert standing(project, KEY) == second
        until(lambda: [each.name for each in state_of(sandbox.root).iterdir()] == [second.name], 120)
    finally:
        shut_down(project, KEY)
    until_nothing_is_left(sandbox)


def test_down_of_the_docs_fails_when_it_cannot_know_and_ends_no_other_process(cellar: Cellar) -> None:
    """Its notes were moved away or are another host's, or the number in them is another process's by now."""
    of_the_docs(cellar.root)
    down = Programs(cellar.sandbox.project, cellar.request().record(datetime.now(UTC)))
    state = state_of(cellar.root)
    with pytest.raises(MachineError, match="is this another host, or was it moved"):
        down.down()
    home = state / down.cluster.name
    state.mkdir(parents=True)
    down.down()
    home.mkdir()
    (home / "host").write_text("elsewhere\n")
    with pytest.raises(MachineError, match="the cluster is on elsewhere"):
        down.down()
    assert home.exists()
    (home / "host").write_text(f"{os.uname().nodename}\n")
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as other:
        (home / "master.pid").write_text(f"{other.pid}\n")
        down.down()
        assert other.poll() is None
        other.kill()
    assert not home.exists()


@pytest.mark.full
def test_a_cluster_whose_workers_never_come_fails_the_run(tmp_path: Path) -> None:
    sandbox = counting(tmp_path / "project")
    up = sandbox.root / "clusters" / "up"
    up.write_text(up.read_text().replace('$(seq "$DRAWDOWN_WORKERS")', ""))
    program = "import drawdown.application.cluster_watch as watch; watch.FIRST_WITHIN = 8.0"
    program += "; from drawdown.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "run", "counts"],
        cwd=sandbox.root, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 8
    assert "cluster.lost" in done.stderr
    assert "no executor has come within 8 s: `alive` says that the cluster is well" in done.stderr
    until_nothing_is_left(sandbox)


def test_a_program_that_cannot_be_called_is_refused_before_anything_starts(
    cellar: Cellar, tmp_path: Path
) -> None:
    down = cellar.root / "clusters" / "down"
    down.chmod(0o644)
    assert refused(cellar, SpecError, "cluster.command", "`down:` of a cluster", "not executable")
    down.unlink()
    assert refused(cellar, SpecError, "cluster.command", "does not exist")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("#!/bin/sh\n")
    elsewhere.chmod(0o755)
    down.symlink_to(elsewhere)
    assert refused(cellar, SpecError, "cluster.command", "link out of the project")
    assert cellar.calls() == []
    assert cellar.recorded() is None


def test_a_local_storage_root_or_a_missing_secret_is_refused_before_anything_starts(tmp_path: Path) -> None:
    assert refused(Cellar(tmp_path / "local", more=""), SpecError, "cluster.storage", "shared_disk: true")
    more = "shared_disk: true\n    spark_secret: NO_SUCH_SECRET"
    secret = Cellar(tmp_path / "secret", more=more)
    assert refused(secret, SpecError, "cluster.secret", "NO_SUCH_SECRET")
    assert secret.calls() == []


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("up", "id", "says"),
    [
        ("echo no quota >&2; exit 3", "cluster.up-failed", "`up` ended with exit code 3: no quota"),
        ("sleep 60 & sleep 60", "cluster.up-failed", "had not ended after 2 s, and was killed"),
        ("echo the cluster is up", "cluster.bad-answer", "not the answer that is needed"),
        ("""echo '{"master": "yarn"}'""", "cluster.bad-answer", "master: "),
        (prints(1, ', "bil": {}'), "cluster.bad-answer", "bil: "),
    ],
)
def test_an_up_that_fails_is_followed_by_down_and_says_why(
    tmp_path: Path, up: str, id: str, says: str
) -> None:
    cellar = Cellar(tmp_path / "project", more="up_within: 2 seconds\n    shared_disk: true")
    cellar.let(up=up)
    assert refused(cellar, MachineError, id, says)
    assert cellar.calls() == ["up", "down"]
    assert cellar.recorded() is None
    until(lambda: not cellar.guards(), 30)


@pytest.mark.full
def test_a_cluster_that_is_not_alive_is_taken_down(cellar: Cellar) -> None:
    with listening() as port:
        cellar.let(up=prints(port), alive="echo worker 2 is missing >&2; exit 4")
        assert refused(cellar, MachineError, "cluster.not-alive", "exit code 4: worker 2 is missing")
    assert cellar.calls() == ["up", "alive", "down"]


@pytest.mark.full
def test_a_master_that_does_not_answer_is_an_error_within_a_minute(cellar: Cellar) -> None:
    cellar.let(up=prints(1))
    assert refused(cellar, MachineError, "cluster.no-master", "spark://127.0.0.1:1", "30 s")
    assert cellar.calls() == ["up", "down"]


def test_secrets_reach_the_programs_and_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCLOUD_TOKEN", SECRET)
    monkeypatch.setenv("SPARK_SECRET", "cluster-secret-1")
    monkeypatch.setenv("SOMETHING_ELSE", "of-the-machine")
    more = "pass_environment: [HCLOUD_TOKEN]\n    spark_secret: SPARK_SECRET\n    shared_disk: true"
    cellar = Cellar(tmp_path / "project", more=more)
    cellar.let(up="env >got; echo failed with $HCLOUD_TOKEN and $SPARK_SECRET >&2; exit 1")
    assert refused(cellar, MachineError, "cluster.up-failed", "failed with *** and ***")
    got = dict(line.split("=", 1) for line in (cellar.root / "got").read_text().splitlines() if "=" in line)
    assert got["HCLOUD_TOKEN"] == SECRET
    assert "SOMETHING_ELSE" not in got
    assert got["DRAWDOWN_CLUSTER_RUN"] == KEY
    assert (got["DRAWDOWN_WORKERS"], got["DRAWDOWN_WORKER_CORES"]) == ("2", "1")
    assert got["DRAWDOWN_WORKER_MEMORY"] == "600m"
    assert got["DRAWDOWN_CLUSTER_DEADLINE"].endswith("Z")
    assert got["DRAWDOWN_CLUSTER_NAME"].startswith("drawdown-flights-")

    with listening() as port:
        cellar.let(up=prints(port, ', "driver_host": "192.0.2.9"'))
        with attended(cellar.request()) as cluster, settings_of(cellar.request(), cluster) as settings:
            assert settings.private is not None
            assert settings.private.stat().st_mode & 0o777 == 0o600
            assert "spark.authenticate.secret cluster-secret-1" in settings.private.read_text()
            assert "cluster-secret-1" not in repr(settings.conf)
            assert settings.conf["spark.driver.host"] == "192.0.2.9"
            assert settings.conf["spark.driver.bindAddress"] == "127.0.0.1"
        assert not settings.private.exists()
    assert SECRET not in repr(cluster)


def test_a_task_after_the_set_up_finds_the_cluster_until_it_is_taken_down(cellar: Cellar) -> None:
    with listening() as port:
        cellar.let(up=prints(port))
        cluster = spin_up(cellar.request())
        assert standing(cellar.sandbox.project, KEY) == cluster
        assert cellar.guards(), "it sees to the deadline"
        origin = {"dag_id": "flights", "dag_run_id": KEY.removeprefix("flights.")}
        explained = explain_loss(cellar.sandbox.project, "cellar", origin)
        assert explained == "`alive` says that the cluster is well"
        assert shut_down(cellar.sandbox.project, KEY)
        assert not shut_down(cellar.sandbox.project, KEY)
    assert cellar.calls() == ["up", "alive", "alive", "alive", "down"]
    assert standing(cellar.sandbox.project, KEY) is None
    until(lambda: not cellar.guards(), 60)
    assert cellar.calls()[-1:] == ["down"], "the guard has nothing to do any more"


def test_a_cluster_that_died_between_two_tasks_is_taken_down_and_not_used(cellar: Cellar) -> None:
    with listening() as port:
        cellar.let(up=prints(port))
        spin_up(cellar.request())
        cellar.let(alive="exit 1")
        assert standing(cellar.sandbox.project, KEY) is None
    until(lambda: cellar.recorded() is None, 60)
    assert cellar.calls()[-1] == "down"


@pytest.mark.parametrize("when", ["in `up`", "afterwards"])
def test_whoever_starts_it_may_be_killed(cellar: Cellar, when: str) -> None:
    with listening() as port:
        cellar.let(up=f"{prints(port)}; touch began; {'sleep 600' if when == 'in `up`' else ''}")
        program = f"""
import time
from pathlib import Path
from drawdown.launch.commands.cluster import attended
from tests.support.cellar import KEY
from drawdown.launch.commands.request import CommandsRequest, Programs
from drawdown.spec import load_project
project = load_project(Path({str(cellar.root)!r}))
with attended(CommandsRequest(project, "cellar", project.clusters["cellar"], KEY, 2, {{}})):
    Path("stands").touch()
    time.sleep(600)
"""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        starter = subprocess.Popen([sys.executable, "-c", program], cwd=cellar.root, env=environment)
        until((cellar.root / ("began" if when == "in `up`" else "stands")).exists, 60)
        starter.kill()
        starter.wait()
        until(lambda: not cellar.guards(), 60)
    assert cellar.calls()[-1] == "down"
    assert cellar.recorded() is None


@pytest.mark.full
def test_the_guard_takes_it_down_at_the_deadline(tmp_path: Path) -> None:
    cellar = Cellar(tmp_path / "project", more="shared_disk: true\n    ttl: 4 hours")
    with listening() as port:
        cellar.let(up=prints(port))
        request = cellar.request()
        short = request.profile.model_copy(update={"ttl": request.profile.ttl.parse("6 seconds")})
        spin_up(type(request)(request.project, "cellar", short, KEY, 2, {}))
        until(lambda: cellar.recorded() is None, 60)
    assert cellar.calls()[-1] == "down"
    until(lambda: not cellar.guards(), 30)


@pytest.mark.capability("HOST-07")
def test_the_deadline_is_by_the_metastore_s_clock(
    tmp_path: Path, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    cellar = Cellar(tmp_path / "project", more="shared_disk: true\n    ttl: 4 hours")
    url = postgres_server.create_database().replace("postgresql:", "postgresql+psycopg:")
    monkeypatch.setenv("STORE", url)
    settings = cellar.root / "include" / "project.yaml"
    settings.write_text(settings.read_text().replace("sqlite:///metastore.db", '"${STORE}"'))
    with listening() as port:
        cellar.let(up=prints(port))
        request = cellar.request()
        short = request.profile.model_copy(update={"ttl": request.profile.ttl.parse("4 minutes")})
        with monkeypatch.context() as ahead:
            for name, value in clock_ahead(300).items():
                ahead.setenv(name, value)
            spin_up(type(request)(request.project, "cellar", short, KEY, 2, {}))
        time.sleep(2)
        assert cellar.guards(), "a guard whose clock is five minutes ahead waits as long as any other"
        assert cellar.calls() == ["up", "alive"]
        assert shut_down(cellar.sandbox.project, KEY)
    until(lambda: not cellar.guards(), 60)


@pytest.mark.capability("HOST-03")
def test_another_machine_calls_down_again_until_it_has_succeeded(cellar: Cellar) -> None:
    with listening() as port:
        cellar.let(up=prints(port), down="echo the cloud is away >&2; exit 5")
        spin_up(cellar.request())
        # As with its machine: the guard is gone.
        for guard in cellar.guards():
            os.kill(guard, signal.SIGKILL)
        with pytest.raises(MachineError) as caught:
            shut_down(cellar.sandbox.project, KEY)
    assert caught.value.id == "cluster.down-failed"
    project = cellar.sandbox.project
    cluster = cellar.recorded()
    assert cluster is not None
    assert cluster.state == "unknown"
    assert cluster.deadline > cluster.begun_at + timedelta(minutes=1), "it does not lose its deadline"
    listed = " ".join(drawdown(cellar.root, "doctor").stdout.split())
    assert f"the cluster {cluster.name} of {KEY} (cellar) is not known to be gone" in listed
    with cellar.sandbox.metastore() as metastore:
        assert end_overdue(project, metastore) == [], "not before the pause is over"
        due(metastore, cluster)
        [said] = end_overdue(project, metastore)
        assert (
            "is not ended: `down` ended with exit code 5: the cloud is away; the machines of" in said.sentence
        )
        assert not said.gone
        cellar.let(down="exit 0")
        due(metastore, cluster)
        [said] = end_overdue(project, metastore)
        assert said.gone
        assert end_overdue(project, metastore) == []
    assert cellar.recorded() is None


STANDS = "mkdir -p {account}; touch {account}/$DRAWDOWN_CLUSTER_NAME"
GOES = "rm -f {account}/$DRAWDOWN_CLUSTER_NAME"
STARTS = """
from pathlib import Path
from drawdown.launch.commands.cluster import spin_up
from tests.support.cellar import Cellar, KEY
from drawdown.launch.commands.request import CommandsRequest, Programs
from drawdown.spec import load_project
project = load_project(Path({root!r}))
spin_up(CommandsRequest(project, "cellar", project.clusters["cellar"], KEY, 2, {{}}))
"""


@pytest.mark.capability("SAFE-09")
def test_a_late_down_of_a_killed_try_leaves_the_cluster_of_the_next_try_known(cellar: Cellar) -> None:
    """Its guard takes minutes, and ends after the second try has started: the second is still taken down."""
    account, go = cellar.root / "account", cellar.root / "go"
    with listening() as port:
        waits = f"until [ -e {go} ]; do sleep 0.1; done"
        cellar.let(
            up=f"{STANDS.format(account=account)}; touch {cellar.root}/began; sleep 600",
            down=f"touch {cellar.root}/ending; {waits}; {GOES.format(account=account)}",
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        program = STARTS.format(root=str(cellar.root))
        starter = subprocess.Popen([sys.executable, "-c", program], cwd=cellar.root, env=environment)
        until((cellar.root / "began").exists, 60)
        starter.kill()
        starter.wait()
        until((cellar.root / "ending").exists, 60)
        [first] = account.iterdir()

        cellar.let(up=f"{STANDS.format(account=account)}; {prints(port)}")
        second = spin_up(cellar.request())
        assert second.name != first.name
        go.touch()
        until(lambda: len(cellar.guards()) == 1, 60)
        assert [each.name for each in account.iterdir()] == [second.name]
        assert standing(cellar.sandbox.project, KEY) == second
        assert shut_down(cellar.sandbox.project, KEY)
    assert list(account.iterdir()) == []
    assert cellar.recorded() is None


@pytest.mark.capability("SAFE-10")
def test_two_deployments_in_one_account_do_not_end_each_other_s_clusters(tmp_path: Path) -> None:
    account = tmp_path / "account"
    staging, prod = Cellar(tmp_path / "staging"), Cellar(tmp_path / "prod")
    with listening() as port:
        for each in (staging, prod):
            each.let(
                up=f"{STANDS.format(account=account)}; {prints(port)}", down=GOES.format(account=account)
            )
        spin_up(prod.request())
        spin_up(staging.request())
        assert shut_down(staging.sandbox.project, KEY)
        left = prod.recorded()
        assert left is not None
        assert [each.name for each in account.iterdir()] == [left.name]
        assert shut_down(prod.sandbox.project, KEY)
    assert list(account.iterdir()) == []


@pytest.mark.capability("SAFE-09")
def test_overdue_clusters_are_ended_side_by_side_and_no_preflight_waits_for_them(tmp_path: Path) -> None:
    from drawdown.airflow.tasks.preflight import PreflightOperator

    cellar = Cellar(tmp_path / "project")
    began = cellar.root / "began"
    cellar.let(
        down=f"mkdir -p {began}; touch {began}/$DRAWDOWN_CLUSTER_INSTANCE;"
        f" until [ $(ls {began} | wc -l) = 3 ]; do sleep 0.1; done"
    )
    with cellar.sandbox.metastore() as metastore:
        for number in range(3):
            request = replace(cellar.request(), key=KEY, by={"task_id": f"{number}"})
            record = request.record(metastore.now() - timedelta(hours=9))
            metastore.clusters.begin(record, lambda other, now: other)
        preflight = PreflightOperator(task_id="preflight", project_root=str(cellar.root), pipelines=[])
        preflight._name_red_clusters(cellar.sandbox.project)
        assert cellar.calls() == []
        ended = end_overdue(cellar.sandbox.project, metastore)
    assert [each.gone for each in ended] == [True] * 3, ended


@pytest.mark.capability("SAFE-09")
def test_a_try_that_comes_back_late_starts_nothing_beside_the_next_one(cellar: Cellar) -> None:
    by = {"dag_run_id": "r", "task_id": "cluster_up"}
    with listening() as port:
        cellar.let(up=prints(port))
        second = spin_up(replace(cellar.request(), by={**by, "try_number": 2}))
        with pytest.raises(MachineError, match="a later try of this task has started"):
            spin_up(replace(cellar.request(), by={**by, "try_number": 1}))
        assert standing(cellar.sandbox.project, KEY) == second
        shut_down(cellar.sandbox.project, KEY)


def due(metastore: Metastore, cluster: StartedCluster) -> None:
    """Let the pause after a `down` that failed be over."""
    metastore.clusters.change(cluster.instance, lambda found, now: replace(found, next_try_at=now))


def refused(cellar: Cellar, kind: type[DrawdownError], id: str, *says: str) -> bool:
    """Whether a start is refused so."""
    with pytest.raises(kind) as caught:
        spin_up(cellar.request())
    assert caught.value.id == id
    text = str(caught.value)
    assert all(each in text for each in says), text
    return True
