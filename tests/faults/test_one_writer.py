"""A second run is refused at once, a stale one that wakes up is fenced, whatever the clock says."""

from __future__ import annotations

import re
import signal
import socket
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.errors import BusyError, SpecError
from tests.support.deaths import run_apart
from tests.support.frozen import frozen
from tests.support.kill_matrix import KINDS, NAME, assert_one_more_run_is_a_no_op, ended, land
from tests.support.sandbox import Sandbox
from tests.support.stale import move_lease


def on(kind: str, where: str, *marks: pytest.MarkDecorator) -> object:
    name = f"{kind} - {where}"
    return pytest.param(kind, where, marks=[pytest.mark.fault("F10", KINDS[kind].sink), *marks], id=name)


FULL = pytest.mark.full


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        on("delta append audited", "before batch.note"),
        on("parquet files", "before batch.stage", FULL),
        on("delta append audited", "before batch.stage", FULL),
        on("delta append audited", "before publish.commit", FULL),
        on("delta append direct", "before batch.show", FULL),
        on("delta update audited", "before batch.note", FULL),
        on("delta update audited", "before publish.commit", FULL),
        on("delta complete audited", "before publish.commit", FULL),
        on("parquet files", "before batch.note", FULL),
    ],
)
@pytest.mark.capability("HOST-04")
def test_a_second_run_is_refused_at_once_and_a_stale_one_that_wakes_up_is_fenced(
    tmp_path: Path, spark: SparkSession, kind: str, where: str
) -> None:
    control = KINDS[kind].project(tmp_path / "control", spark)
    land(control, 0)
    control.run(NAME)
    sandbox = KINDS[kind].project(tmp_path / "project", spark)
    settings = sandbox.root / "include" / "project.yaml"
    # A run that is frozen while it renews its lease keeps SQLite locked (docs/guarantees.md): it never does.
    settings.write_text(settings.read_text() + "lease_ttl: 30 minutes\nairflow: {retry_delay: 31 minutes}\n")
    land(sandbox, 0)

    with frozen(sandbox, NAME, where) as stale:
        with pytest.raises(BusyError) as busy:
            sandbox.run(NAME)
        # At once: it has not waited for the lease to end.
        with sandbox.metastore() as metastore:
            assert metastore.holder_of(NAME) is not None
        holder = re.escape(f"{socket.gethostname()} pid {stale.pid}")
        moment = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
        assert re.search(f"is being run by {holder} .* since {moment}, until {moment}", busy.value.what)

        move_lease(sandbox, -timedelta(hours=1))
        sandbox.run(NAME)
        code, said = stale.wake()

    assert code == 3, said
    assert said.count("lease.lost") == 1, said
    assert "Traceback" not in said
    # What it had written before it was fenced is known to nobody, and goes by VACUUM.
    found = replace(ended(KINDS[kind], sandbox), strays=[])
    assert found == ended(KINDS[kind], control)
    with sandbox.metastore() as metastore:
        assert [run.state for run in metastore.runs(NAME)] == ["succeeded", "crashed"]
    assert_one_more_run_is_a_no_op(sandbox)


@pytest.mark.full
@pytest.mark.fault("F10", "delta")
def test_the_lease_of_a_killed_run_is_taken_over_at_once(tmp_path: Path, spark: SparkSession) -> None:
    """Its time would be 30 minutes; its JVM, which ends a moment later, is waited for."""
    kind = KINDS["delta append audited"]
    control = kind.project(tmp_path / "control", spark)
    land(control, 0)
    control.run(NAME)
    sandbox = kind.project(tmp_path / "project", spark)
    settings = sandbox.root / "include" / "project.yaml"
    settings.write_text(settings.read_text() + "lease_ttl: 30 minutes\nairflow: {retry_delay: 31 minutes}\n")
    land(sandbox, 0)
    assert run_apart(sandbox, NAME, "kill after batch.note 2").returncode == -signal.SIGKILL
    with sandbox.metastore() as metastore:
        until = time.monotonic() + 30
        while metastore.holder_of(NAME) is not None:
            assert time.monotonic() < until
            time.sleep(0.1)
    sandbox.run(NAME)
    assert ended(kind, sandbox) == ended(kind, control)


@pytest.mark.fault("F10", "delta")
def test_a_retry_waits_longer_than_the_lease_of_the_attempt_that_died(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path / "project")
    assert sandbox.project.airflow.retry_delay.delta > sandbox.project.lease_ttl.delta
    spec = sandbox.root / "include" / "project.yaml"
    spec.write_text(spec.read_text() + "lease_ttl: 3 minutes\n")
    with pytest.raises(SpecError, match="a retry would meet the dead attempt's lease"):
        _ = sandbox.project


@pytest.mark.fault("F36", "delta")
def test_a_clock_that_jumped_back_holds_a_dead_lease_for_one_term_only(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Without it, for as long as it jumped. That it may jump forward, a stale holder that is fenced shows."""
    kind = KINDS["delta append audited"]
    control = kind.project(tmp_path / "control", spark)
    land(control, 0)
    control.run(NAME)
    sandbox = kind.project(tmp_path / "project", spark)
    spec = sandbox.root / "include" / "project.yaml"
    spec.write_text(spec.read_text() + "lease_ttl: 5 seconds\n")
    land(sandbox, 0)
    assert run_apart(sandbox, NAME, "kill after batch.note 2").returncode == -signal.SIGKILL
    move_lease(sandbox, timedelta(days=1))

    with pytest.raises(BusyError):
        sandbox.run(NAME)
    with sandbox.metastore() as metastore:
        holder = metastore.holder_of(NAME)
        assert holder is not None
        assert holder.expires_at - metastore.now() <= timedelta(seconds=5)
        while metastore.holder_of(NAME) is not None:
            time.sleep(0.1)
    sandbox.run(NAME)
    assert ended(kind, sandbox) == ended(kind, control)
