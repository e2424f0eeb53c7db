"""Hosts that share nothing are cut off in the middle of a run, and come back."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from drawdown.fault_points import FAULT
from tests.support.frozen import until_asleep
from tests.support.host_project import Beyond, HostProject, beyond, clusters_on, machines, until_no_daemons
from tests.support.hosts import Hosts
from tests.support.slow import slow_transform
from tests.support.waiting import until

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]

QUALITY = """
rules:
  - {name: k_is_there, check: "k is not null", on_fail: fail}
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: n, min_value: 1}
"""
SPEC = """
sources:
  events: {format: json, path: landing/events, schema: "id INT, k STRING", options: {maxFilesPerTrigger: 1}}
transform: transform.py
sink: {format: delta, path: tables/counts, schema: out.ddl, mode: update, keys: [k], publish: audited}
state: {partitions: 2}
cluster: """
FILES, ROWS = 4, 10
COUNTED = '.groupBy("k").count().withColumnRenamed("count", "n")'
CHECKPOINT = "_drawdown/counts/checkpoint-1"


def counts(cluster: str, seconds: float = 0.5) -> dict[str, dict[str, str]]:
    """A pipeline with state that takes its time for each row."""
    return {
        "counts": {
            "pipeline.yaml": f"{SPEC}{cluster}\n",
            "transform.py": slow_transform("events", "k", "string", seconds, COUNTED),
            "out.ddl": "k STRING, n BIGINT",
            "quality.yaml": QUALITY,
        }
    }


class Landed:
    """Waves of files in the bucket, and how often each key is in all of them."""

    def __init__(self, servers: Beyond) -> None:
        self._servers = servers
        self.keys: Counter[str] = Counter()
        self._waves = 0

    def wave(self) -> None:
        for file in range(FILES):
            rows = [{"id": i, "k": "abcde"[(i * i + file + self._waves) % 5]} for i in range(ROWS)]
            self._servers.land(f"landing/events/{self._waves}-{file}.json", rows)
            self.keys.update(row["k"] for row in rows)
        self._waves += 1

    def assert_counted(self) -> None:
        found = Counter((row["k"], row["n"]) for row in self._servers.rows("tables/counts"))
        assert found == Counter(self.keys.items())


def running(servers: Beyond, batch: int) -> bool:
    """Whether Spark has planned a batch and has not committed it."""
    planned, done = (set(servers.files(f"{CHECKPOINT}/{log}")) for log in ("offsets", "commits"))
    return f"{CHECKPOINT}/offsets/{batch}" in planned and f"{CHECKPOINT}/commits/{batch}" not in done


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

            ended_alone = command.ended_within(300 - (time.monotonic() - cut))
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
    ("moment", "error"),
    [
        pytest.param("before batch.note 3", "lease.lost", id="at the metastore"),
        pytest.param("after batch.end 3", "checkpoint.other-writer", id="at the storage"),
        pytest.param("before publish.commit", "lease.lost", id="at the table"),
    ],
)
def test_a_driver_that_was_cut_off_goes_on_and_neither_commits_nor_publishes(
    hosts: Hosts, moment: str, error: str
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
        assert (code, said.count(error)) == (3, 1), said
        assert "Traceback" not in said
        assert (servers.table("tables/counts").version(), servers.files(CHECKPOINT)) == before
        landed.wave()
        stale.ends_well("run", "counts")
        landed.assert_counted()
        assert not servers.files("_drawdown/counts/staged"), "what was left is gone"
