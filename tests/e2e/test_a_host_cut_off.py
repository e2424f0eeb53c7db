"""Hosts that share nothing are cut off in the middle of a run, and come back."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from drawdown.fault_points import FAULT
from tests.support.frozen import until_asleep
from tests.support.host_counts import CHECKPOINT, Landed, counts, running
from tests.support.host_project import (
    HostProject,
    beyond,
    clusters_on,
    daemons_of,
    machines,
    until_no_daemons,
)
from tests.support.hosts import Hosts
from tests.support.waiting import until

pytestmark = [pytest.mark.full, pytest.mark.timeout(2400)]


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    with Hosts(tmp_path / "hosts", "driver", "other", "one", "two") as hosts:
        machines(hosts)
        yield hosts


@pytest.mark.capability("HOST-04")
def test_another_host_takes_over_from_a_driver_that_is_cut_off_in_a_batch(hosts: Hosts) -> None:
    with beyond(lease_ttl="20 seconds") as servers:
        landed = Landed(servers)
        landed.wave()
        stale, next_one = (HostProject(hosts, name, servers, counts("hosts")) for name in ("driver", "other"))
        with stale.command("run", "counts") as command, servers.metastore() as metastore:
            command.until(lambda line: "counts: batch 1:" in line)
            until(lambda: running(servers, 2), 60)
            hosts.cut_off("driver")
            assert running(servers, 2), "it is cut off in the middle of a batch"
            cut = time.monotonic()
            holder = metastore.holder_of("counts")
            assert holder is not None
            assert holder.holder.startswith("dd-driver pid ")

            until(lambda: metastore.holder_of("counts") is None, 60)
            next_one.ends_well("run", "counts")
            landed.assert_counted()
            before = servers.table("tables/counts").version(), servers.files(CHECKPOINT)

            ended_alone = command.ended_within(600 - (time.monotonic() - cut))
            hosts.join("driver")
            assert ended_alone, "a driver that is cut off waits for ever"
            code = command.ended(60)
        said = "".join(command.said)
        assert code != 0
        assert "Traceback" not in said
        assert (servers.table("tables/counts").version(), servers.files(CHECKPOINT)) == before
        landed.wave()
        stale.ends_well("run", "counts")
        landed.assert_counted()
        assert clusters_on(hosts["one"]) == []
        until_no_daemons(hosts)


@pytest.mark.capability("HOST-04")
@pytest.mark.parametrize(
    ("moment", "error", "exit_code"),
    [
        pytest.param("before batch.note 3", "lease.lost", 3, id="at the metastore"),
        pytest.param("after batch.end 3", "checkpoint.other-writer", 4, id="at the storage"),
        pytest.param("before publish.commit", "lease.lost", 3, id="at the table"),
    ],
)
def test_a_driver_that_was_cut_off_goes_on_and_neither_commits_nor_publishes(
    hosts: Hosts, moment: str, error: str, exit_code: int
) -> None:
    """Its host stands still for as long as it is cut off, so that it goes on at this very moment."""
    with beyond(lease_ttl="20 seconds") as servers:
        landed = Landed(servers)
        landed.wave()
        stale, next_one = (
            HostProject(hosts, name, servers, counts("local", 0)) for name in ("driver", "other")
        )
        with stale.command("run", "counts", **{FAULT: f"freeze {moment}"}) as command:
            until_asleep(command.pid, command.poll)
            hosts.cut_off("driver")
            with servers.metastore() as metastore:
                until(lambda: metastore.holder_of("counts") is None, 60)
            next_one.ends_well("run", "counts")
            landed.assert_counted()
            before = servers.table("tables/counts").version(), servers.files(CHECKPOINT)

            hosts.join("driver")
            os.killpg(command.pid, signal.SIGCONT)
            code = command.ended(240)
        said = "".join(command.said)
        assert (code, said.count(error)) == (exit_code, 1), said
        assert "Traceback" not in said
        assert (servers.table("tables/counts").version(), servers.files(CHECKPOINT)) == before
        landed.wave()
        stale.ends_well("run", "counts")
        landed.assert_counted()
        assert not servers.files("_drawdown/counts/staged"), "what was left is gone"


@pytest.mark.capability("HOST-03")
def test_a_run_waits_for_a_worker_s_host_that_is_cut_off_for_twenty_seconds(hosts: Hosts) -> None:
    with beyond() as servers:
        landed = Landed(servers)
        landed.wave()
        project = HostProject(hosts, "driver", servers, counts("hosts"))
        with project.command("run", "counts") as command:
            command.until(lambda line: "counts: batch 0:" in line)
            until(lambda: running(servers, 1), 60)
            hosts.cut_off("two")
            time.sleep(20)
            hosts.join("two")
            code = command.ended(300)
        assert code == 0, "".join(command.said)
        landed.assert_counted()
        until_no_daemons(hosts)


@pytest.mark.capability("HOST-03")
@pytest.mark.parametrize("back", ["in the run", "after the run"])
def test_a_run_goes_on_without_a_worker_s_host_that_is_cut_off(hosts: Hosts, back: str) -> None:
    with beyond() as servers:
        landed = Landed(servers)
        landed.wave()
        project = HostProject(hosts, "driver", servers, counts("hosts"))
        with project.command("run", "counts") as command:
            command.until(lambda line: "counts: batch 0:" in line)
            until(lambda: running(servers, 1), 60)
            hosts.cut_off("two")
            cut = time.monotonic()
            command.until(lambda line: "counts: batch 2:" in line)
            took = time.monotonic() - cut
            if back == "in the run":
                hosts.join("two")
            code = command.ended(300)
        said = "".join(command.said)
        assert took < 240, f"it hung for {took:.0f} s"
        assert "Traceback" not in said
        landed.assert_counted()
        if back == "in the run":
            assert code == 0, said
        else:
            assert (code, said.count("cluster.down-failed")) == (8, 1), said
            assert "no way to two" in said
            assert daemons_of(hosts["two"]), "what is on it could not be ended"
            assert daemons_of(hosts["one"]) == []
            hosts.join("two")
            landed.wave()
            project.ends_well("run", "counts")
            landed.assert_counted()
        until_no_daemons(hosts)
