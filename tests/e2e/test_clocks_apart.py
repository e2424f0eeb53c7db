"""The clocks of hosts are five minutes ahead of those of the servers, or behind: it makes no difference."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.host_counts import CHECKPOINT, Landed, counts, running
from tests.support.host_project import Beyond, HostProject, beyond, machines, until_no_daemons
from tests.support.hosts import Hosts
from tests.support.waiting import until

pytestmark = [pytest.mark.full, pytest.mark.timeout(2400), pytest.mark.capability("HOST-07")]

AHEAD = {"driver": 300, "other": -300, "one": -300, "two": 300}
ABOUT = 60.0
"""Seconds by which a time may be off because of what lies between."""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    with Hosts(tmp_path / "hosts", *AHEAD, ahead=AHEAD) as hosts:
        machines(hosts)
        yield hosts


def test_hosts_with_other_clocks_take_turns_and_take_over(hosts: Hosts, tmp_path: Path) -> None:
    for name, by in AHEAD.items():
        now = float(hosts[name].run(sys.executable, "-c", "import time; print(time.time())").stdout)
        assert now - time.time() == pytest.approx(by, abs=ABOUT)
    with beyond(lease_ttl="20 seconds") as servers, servers.metastore() as metastore:
        began = datetime.now(UTC)
        landed = Landed(servers)
        landed.wave()
        seconds = tmp_path / "seconds"
        seconds.write_text("0.1")
        pipelines = counts("hosts", seconds)
        ahead, behind = (HostProject(hosts, name, servers, pipelines) for name in ("driver", "other"))
        ahead.ends_well("run", "counts")
        landed.assert_counted()
        by_true_time = planned(servers, 0) - AHEAD["driver"]
        assert began.timestamp() <= by_true_time <= time.time(), "Spark's driver has the clock of its host"
        until_no_daemons(hosts)

        landed.wave()
        with behind.command("run", "counts") as command:
            command.until(lambda line: "counts: batch 4:" in line)
            until(lambda: running(servers, 5), 60)
            seconds.write_text("4")
            code, said = ahead.ends("run", "counts")
            assert (code, said.count("lease.held")) == (4, 1), said
            until(lambda: running(servers, 6) or running(servers, 7), 120)
            hosts.cut_off("other")
            seconds.write_text("0.1")
            until(lambda: metastore.holder_of("counts") is None, 60)
            ahead.ends_well("run", "counts")
            landed.assert_counted()
            hosts.join("other")
            assert command.ended(120) != 0
        said = "".join(command.said)
        assert "Traceback" not in said

        landed.wave()
        behind.ends_well("upkeep", "--all")
        ahead.ends_well("upkeep", "--all")
        behind.ends_well("run", "counts")
        landed.assert_counted()
        runs = metastore.runs("counts")
        times = [run.started_at for run in reversed(runs) if run.started_at is not None]
        assert times == sorted(times)
        assert all(began - timedelta(seconds=1) <= at <= datetime.now(UTC) for at in times), times
        until_no_daemons(hosts)


def planned(servers: Beyond, batch: int) -> float:
    """When Spark planned a batch, by its driver's clock, in seconds since 1970 UTC."""
    name = f"{CHECKPOINT}/offsets/{batch}"
    lines = servers.files(f"{CHECKPOINT}/offsets")[name].decode().splitlines()
    return float(json.loads(lines[1])["batchTimestampMs"]) / 1_000
