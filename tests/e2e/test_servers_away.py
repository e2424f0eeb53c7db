"""The metastore or the storage is away for half a minute: nothing that is sent there gets an answer."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.host_counts import Landed, counts, running
from tests.support.host_project import HostProject, beyond, clusters_on, machines, until_no_daemons
from tests.support.hosts import METASTORE, STORAGE, Hosts
from tests.support.waiting import until

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]

AWAY = 30.0
ASKS = """
import os, time
from drawdown.metastore import Metastore

with Metastore.open(os.environ["METASTORE"]) as metastore:
    took = 0.0
    while took < 5:
        began = time.monotonic()
        metastore.now()
        took = time.monotonic() - began
        print("asked" if took < 5 else f"waited {took:.0f}", flush=True)
"""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    with Hosts(tmp_path / "hosts", "driver", "one", "two") as hosts:
        machines(hosts)
        yield hosts


@pytest.mark.capability("HOST-05")
def test_a_statement_that_is_sent_right_then_has_its_answer_afterwards(hosts: Hosts) -> None:
    with beyond() as servers:
        command = hosts["driver"].command(sys.executable, "-c", ASKS)
        with subprocess.Popen(
            command, env={**os.environ, **servers.environment}, stdout=subprocess.PIPE, text=True
        ) as asking:
            assert asking.stdout is not None
            assert asking.stdout.readline() == "asked\n"
            hosts.away(METASTORE)
            time.sleep(AWAY)
            hosts.back(METASTORE)
            *_, last = asking.stdout
            assert asking.wait(30) == 0
        assert AWAY - 5 < float(last.removeprefix("waited ")) < 60


@pytest.mark.parametrize(
    "address",
    [
        pytest.param(METASTORE, id="metastore", marks=pytest.mark.capability("HOST-05")),
        pytest.param(STORAGE, id="storage", marks=pytest.mark.capability("HOST-06")),
    ],
)
def test_half_a_minute_costs_a_run_a_wait(hosts: Hosts, address: str) -> None:
    with beyond() as servers:
        landed = Landed(servers)
        landed.wave()
        project = HostProject(hosts, "driver", servers, counts("hosts"))
        with project.command("run", "counts") as command:
            command.until(lambda line: "counts: batch 0:" in line)
            until(lambda: running(servers, 1), 60)
            hosts.away(address)
            time.sleep(AWAY)
            still_on = command.poll() is None
            hosts.back(address)
            code = command.ended(300)
        said = "".join(command.said)
        assert code == 0, said + project.spark_log()
        assert still_on
        landed.assert_counted()
        landed.wave()
        project.ends_well("run", "counts")
        landed.assert_counted()
        until_no_daemons(hosts)


@pytest.mark.parametrize(
    ("address", "error"),
    [
        pytest.param(
            METASTORE, "metastore.unreachable", id="metastore", marks=pytest.mark.capability("HOST-05")
        ),
        pytest.param(STORAGE, "storage.unreachable", id="storage", marks=pytest.mark.capability("HOST-06")),
    ],
)
def test_a_run_that_would_begin_meanwhile_says_so_and_starts_no_cluster(
    hosts: Hosts, address: str, error: str
) -> None:
    with beyond() as servers:
        landed = Landed(servers)
        landed.wave()
        project = HostProject(hosts, "driver", servers, counts("local", 0))
        project.ends_well("run", "counts")
        landed.wave()
        hosts.away(address)
        began = time.monotonic()
        code, said = project.ends("run", "counts")
        took = time.monotonic() - began
        assert (code, said.count(error)) == (5, 1), said
        assert "Traceback" not in said
        assert took < 180
        assert clusters_on(hosts["one"]) == []
        hosts.back(address)
        project.ends_well("run", "counts")
        landed.assert_counted()
