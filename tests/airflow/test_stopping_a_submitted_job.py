"""However a submitted application is ended, nothing of it stays behind, and in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.submitted_job import SubmittedJob, below

pytestmark = pytest.mark.timeout(150)


def test_sigterm_to_the_task_group_lets_the_driver_stop_by_itself(tmp_path: Path) -> None:
    with SubmittedJob(tmp_path) as job:
        # What Airflow does; the task here has no handler and dies at once, as after Airflow's SIGKILL.
        os.killpg(job.task.pid, signal.SIGTERM)
        job.seconds_until_gone(60)
    assert not job.folder.exists()


@pytest.mark.full
def test_sigterm_to_the_front_brings_the_last_lines_and_the_exit_code(tmp_path: Path) -> None:
    with SubmittedJob(tmp_path, "3") as job:
        os.kill(job.front, signal.SIGTERM)
        assert job.task.wait(60) == 3
        job.seconds_until_gone(15)
    assert "drawdown: asked to stop; the driver has 20 s" in job.lines()
    assert "the job stopped cleanly" in job.lines()
    assert not job.folder.exists()


@pytest.mark.full
@pytest.mark.capability("OWN-05")
def test_an_application_that_ends_without_an_answer_is_no_success(tmp_path: Path) -> None:
    with SubmittedJob(tmp_path, "0", "--silent") as job:
        os.kill(job.front, signal.SIGTERM)
        assert job.task.wait(60) == 1
        job.seconds_until_gone(15)
    assert "the job stopped cleanly" in job.lines()
    assert any(line.startswith("ERROR application.no-answer: ") for line in job.lines())


@pytest.mark.capability("OWN-10")
def test_no_process_below_the_guard_has_a_key_of_airflow(tmp_path: Path) -> None:
    given = {"AIRFLOW__CORE__FERNET_KEY": "canary", "OTHER_PASSWORD": "canary", "KAFKA_PASSWORD": "wanted"}
    with SubmittedJob(tmp_path, DRAWDOWN_PASSED_ENVIRONMENT="KAFKA_PASSWORD", **given) as job:
        # The JVM, the driver and Python's daemon; a worker may just be ending, and has none then.
        environments = [text for pid in below(job.guard) if (text := _environment(pid))]
        os.kill(job.front, signal.SIGTERM)
        job.seconds_until_gone(60)
    assert len(environments) >= 3
    assert not any(b"canary" in environment for environment in environments)
    assert all(b"KAFKA_PASSWORD=wanted" in environment for environment in environments)


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


@pytest.mark.full
def test_a_killed_task_takes_spark_with_it(tmp_path: Path) -> None:
    with SubmittedJob(tmp_path) as job:
        os.kill(job.task.pid, signal.SIGKILL)
        job.seconds_until_gone(60)
    assert not job.folder.exists()


@pytest.mark.full
def test_a_killed_front_takes_spark_with_it(tmp_path: Path) -> None:
    with SubmittedJob(tmp_path) as job:
        os.kill(job.front, signal.SIGKILL)
        job.task.wait(60)
        job.seconds_until_gone(60)
    assert "the job stopped cleanly" in job.lines()
    assert not job.folder.exists()


@pytest.mark.full
def test_a_killed_guard_closes_the_stop_pipe(tmp_path: Path) -> None:
    with SubmittedJob(tmp_path) as job:
        os.kill(job.guard, signal.SIGKILL)
        assert job.task.wait(60) == 137
        job.seconds_until_gone(15)
    assert not job.folder.exists()


@pytest.mark.full
def test_killing_task_front_and_guard_at_once_still_ends_spark(tmp_path: Path) -> None:
    with SubmittedJob(tmp_path) as job:
        for pid in (job.guard, job.front, job.task.pid):
            os.kill(pid, signal.SIGKILL)
        job.seconds_until_gone(60)
    assert not job.folder.exists()


@pytest.mark.full
def test_a_killed_jvm_fails_the_task_within_seconds(tmp_path: Path) -> None:
    with SubmittedJob(tmp_path) as job:
        os.kill(job.jvm, signal.SIGKILL)
        assert job.task.wait(40) == 137
        job.seconds_until_gone(15)
    assert not job.folder.exists()


@pytest.mark.full
def test_a_driver_that_does_not_listen_is_killed_after_the_grace_time(tmp_path: Path) -> None:
    with SubmittedJob(tmp_path, "0", "--stubborn", grace=2) as job:
        os.kill(job.front, signal.SIGTERM)
        # The driver, by its stop pipe, and the guard end it at the same time: either exit code is right.
        assert job.task.wait(40) in (137, 143)
        job.seconds_until_gone(15)
    assert "the job stopped cleanly" not in job.lines()
    assert not job.folder.exists()


def test_what_spark_submit_refuses_reaches_the_log_with_its_exit_code(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "drawdown.launch.submit", "--no-such-option", "job.py"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "--no-such-option" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
@pytest.mark.parametrize("who", ["jvm", pytest.param("guard", marks=pytest.mark.full)])
def test_a_killed_run_leaves_no_temporary_file(tmp_path: Path, who: str) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with SubmittedJob(tmp_path, TMPDIR=str(temporary)) as job:
        [folder] = temporary.iterdir()
        assert {path.name.partition("-")[0] for path in folder.iterdir()} >= {"blockmgr", "spark"}
        os.kill(getattr(job, who), signal.SIGKILL)
        job.task.wait(60)
        job.seconds_until_gone(15)
    assert list(temporary.iterdir()) == []
