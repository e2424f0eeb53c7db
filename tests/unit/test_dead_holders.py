"""A lease whose holder is provably dead is free at once; one of which anything is unknown keeps its time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from drawdown.errors import BusyError, RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.operations import lease_holders as holding
from drawdown.metastore.records import Lease
from drawdown.metastore.tables import leases
from drawdown.processes import scratch
from drawdown.processes.scratch import SCRATCH

HOUR = timedelta(hours=1)

HOLDS = """
import sys
from datetime import timedelta
from drawdown.metastore import Metastore, this_process
with Metastore.open(sys.argv[1]) as store:
    store.acquire("flights", this_process(), "r1", timedelta(hours=1))
    print("holds it", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(url: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has taken the lease of `flights`, and lives."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**{name: value for name, value in os.environ.items() if name != SCRATCH}, **environment},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "holds it\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def take(store: Metastore, run_id: str = "r2") -> Lease:
    return store.acquire("flights", "another", run_id, HOUR)


def noted(store: Metastore) -> dict[str, Any]:
    with store._engine.begin() as conn:
        return dict(conn.execute(select(leases.c.process)).scalar_one())


def note(store: Metastore, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes what is noted of the holder's process."""
    now = noted(store)
    change(now)
    with store._writer.begin() as conn:
        conn.execute(update(leases).values(process=now))


def test_the_lease_of_a_killed_process_is_taken_at_once_and_what_it_began_stays_fenced(
    metastore: Metastore, store_url: str
) -> None:
    with holder(store_url) as process:
        old = metastore.holder_of("flights")
        assert old is not None
        assert old.holder.endswith(f" pid {process.pid}")
        with pytest.raises(BusyError, match=f"pid {process.pid}"):
            take(metastore)
        os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(BusyError):  # it sleeps, and will wake up
            take(metastore)
        process.kill()
        process.wait()
        assert metastore.holder_of("flights") is None
        assert take(metastore).epoch == old.epoch + 1
    with pytest.raises(RefusedError, match="run r2"):
        metastore.renew(old, HOUR)


def test_a_dead_process_that_nobody_has_waited_for_is_dead(metastore: Metastore, store_url: str) -> None:
    with holder(store_url) as process:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert take(metastore).epoch == 2


def test_a_number_that_another_process_has_got_is_no_sign_of_life(
    metastore: Metastore, store_url: str
) -> None:
    # Not this process: it may have a Spark of other tests, and is not gone while that lives.
    with holder(store_url):
        with pytest.raises(BusyError):
            take(metastore)
        note(metastore, lambda found: found["of"].update(started=found["of"]["started"] - 1))
        assert take(metastore).epoch == 2


def test_a_holder_is_not_gone_while_what_it_has_started_lives(metastore: Metastore, store_url: str) -> None:
    """As the JVM of a killed driver, which may end a batch of its own."""
    mark = {SCRATCH: "/tmp/drawdown-run-of-a-test"}
    with holder(store_url, **mark) as process:
        jvm = subprocess.Popen(["sleep", "60"], env={**os.environ, **mark})
        process.kill()
        process.wait()
        with pytest.raises(BusyError):
            take(metastore)
        jvm.kill()
        jvm.wait()
        assert take(metastore).epoch == 2


@pytest.mark.parametrize(
    "another",
    [
        pytest.param({"host": "elsewhere"}, id="host"),
        pytest.param({"boot": "00000000-0000-0000-0000-000000000000"}, id="kernel"),
        pytest.param({"namespaces": ["pid:[1]", "time:[1]", "user:[1]"]}, id="container"),
        pytest.param({"rights": ["4711 4711 4711 4711", "0"]}, id="user"),
    ],
)
def test_of_a_process_elsewhere_nothing_is_known(
    metastore: Metastore, store_url: str, another: dict[str, Any]
) -> None:
    with holder(store_url) as process:
        process.kill()
        process.wait()
        before = noted(metastore)
        note(metastore, lambda found: found["of"].update(another))
        with pytest.raises(BusyError):
            take(metastore)
        note(metastore, lambda found: found.update(before))
        assert take(metastore).epoch == 2


def test_a_holder_that_another_program_has_noted_is_unknown(metastore: Metastore, store_url: str) -> None:
    """A release back knows no such column: what stands there is of the holder before."""
    with holder(store_url) as process:
        process.kill()
        process.wait()
        with metastore._writer.begin() as conn:
            conn.execute(update(leases).values(epoch=2, holder="the release before", run_id="r0"))
        with pytest.raises(BusyError, match="the release before"):
            take(metastore)
        with metastore._writer.begin() as conn:
            conn.execute(update(leases).values(epoch=1, process=None))
        with pytest.raises(BusyError):
            take(metastore)


def test_a_driver_whose_executors_are_elsewhere_is_never_provably_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert holding.this_one() is not None
    monkeypatch.setattr(scratch, "_elsewhere", [])
    scratch.note_master("local[4]")
    assert holding.this_one() is not None
    scratch.note_master("spark://elsewhere:7077")
    assert holding.this_one() is None


def test_a_driver_of_a_spark_submit_that_is_not_ours_is_never_provably_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.delenv(SCRATCH, raising=False)
    assert holding.this_one() is None
    monkeypatch.setenv(SCRATCH, "/tmp/drawdown-run-x")
    found = holding.this_one()
    assert found is not None
    assert found["scratch"] == "drawdown-run-x"
