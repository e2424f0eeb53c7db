"""Several hosts on this machine: each has an address and a folder of its own, and sees no other's folder.

A host is a network namespace, joined to the others by a bridge, a mount namespace in which the folders of
the others are covered by an empty one, and a name. They share processes and installed software, as machines
of one image would; the clock too, unless a test sets theirs. Several processes of tests may have hosts at
once. Needs root, `ip` and `nsenter`.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.support.clock import clock_ahead


def _number() -> int:
    """Return a number that no other process of tests has on this machine, for as long as this one lives."""
    if os.geteuid() != 0:
        return 0
    for number in range(1, 250):
        lock = os.open(f"/run/drawdown-hosts-{number}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return number
    raise AssertionError("no number is free for hosts: are 249 processes of tests running?")


_NUMBER = _number()
NETWORK = f"10.77.{_NUMBER}"
BEYOND = f"{NETWORK}.1"
"""The address of this machine itself, at which all hosts reach the servers that a test starts there."""
STORAGE, METASTORE, BROKER = (f"{NETWORK}.{number}" for number in (201, 202, 203))
"""Further addresses of this machine, each of which can be away."""

_PREFIX = f"dd{_NUMBER}-"
"""Of the names of links and namespaces, which are this machine's."""


@dataclass(frozen=True)
class Host:
    """``anchor``: the process that keeps its namespaces; ``folder``: what only this host sees.

    ``ahead``: by how many seconds its clock is; None for the clock of whoever calls.
    """

    name: str
    address: str
    anchor: int
    folder: Path
    ahead: int | None = None

    def command(self, *arguments: str) -> list[str]:
        """A command line that runs a program on this host, from any other one."""
        inside = ["nsenter", f"--target={self.anchor}", "--mount", "--net", "--uts", "--"]
        return [*inside, *self._clock(), *arguments]

    def run(
        self, *arguments: str, timeout: float = 300, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program there to its end."""
        return subprocess.run(
            self.command(*arguments),
            cwd="/",
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def _clock(self) -> list[str]:
        if self.ahead is None:
            return []
        return ["env", *(f"{name}={value}" for name, value in clock_ahead(self.ahead).items())]

    def sees(self, path: Path) -> bool:
        return self.run("test", "-e", str(path)).returncode == 0

    def reaches(self, address: str, port: int) -> bool:
        """Whether a server answers there."""
        connect = f"import socket; socket.create_connection(({address!r}, {port}), 2)"
        return self.run(sys.executable, "-c", connect).returncode == 0


class Hosts:
    """``with Hosts(folder, "driver", "one") as hosts``: ``hosts["one"]`` is a Host. All is gone behind it.

    Args:
        ahead: by how many seconds the clocks of hosts are ahead of this machine's, by name.
    """

    def __init__(self, folder: Path, *names: str, ahead: Mapping[str, int] | None = None) -> None:
        self._folder = folder
        self._names = names
        self._ahead = ahead or {}
        self._bridge = f"{_PREFIX}bridge"
        self._hosts: dict[str, Host] = {}
        self._anchors: list[subprocess.Popen[bytes]] = []

    def __getitem__(self, name: str) -> Host:
        return self._hosts[name]

    def __enter__(self) -> Self:
        if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("nsenter") is None:
            pytest.skip("hosts of their own need root, ip and nsenter")
        self._tear_down()
        try:
            self._begin()
        except BaseException:
            self._tear_down()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tear_down()

    def cut_off(self, name: str) -> None:
        """Take its link down, as if its cable were pulled."""
        _ip("link", "set", f"{_PREFIX}{name}", "down")

    def join(self, name: str) -> None:
        _ip("link", "set", f"{_PREFIX}{name}", "up")

    def away(self, address: str) -> None:
        """Take one address of this machine away: what is sent there gets no answer, not even a refusal.

        The server behind it goes on, and its connections are as they were when the address is `back`.
        """
        _ip("addr", "del", f"{address}/32", "dev", self._bridge)

    def back(self, address: str) -> None:
        _ip("addr", "add", f"{address}/32", "dev", self._bridge)

    def _begin(self) -> None:
        # With an address of its own: else it takes the lowest of its links, another one with each new host.
        _ip("link", "add", self._bridge, "address", "02:dd:00:00:00:01", "type", "bridge")
        _ip("addr", "add", f"{BEYOND}/24", "dev", self._bridge)
        for address in (STORAGE, METASTORE, BROKER):
            self.back(address)
        _ip("link", "set", self._bridge, "up")
        empty = self._folder / "empty"
        empty.mkdir(parents=True)
        folders = {name: self._folder / name for name in self._names}
        # As of machines that know each other by name: Java asks for the address of its own.
        numbers = {name: f"{NETWORK}.{number}" for number, name in enumerate(self._names, start=2)}
        known = self._folder / "known"
        lines = [f"{address} dd-{name}" for name, address in numbers.items()]
        known.write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))
        for folder in folders.values():
            folder.mkdir()
        for name, address in numbers.items():
            link = space = f"{_PREFIX}{name}"
            _ip("netns", "add", space)
            _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("link", "set", link, "master", self._bridge, "up")
            for inside in (["addr", "add", f"{address}/24", "dev", "eth0"], ["link", "set", "eth0", "up"],
                           ["link", "set", "lo", "up"]):  # fmt: skip
                _ip("-n", space, *inside)
            self._know_the_way(space)
            hidden = [f"mount --bind {empty} {folder}" for other, folder in folders.items() if other != name]
            ready = folders[name] / ".ready"
            own = [*hidden, f"mount --bind {known} /etc/hosts", f"hostname dd-{name}", f"touch {ready}"]
            script = "; ".join(["set -e", "mount --make-rprivate /", *own, "exec sleep infinity"])
            anchor = subprocess.Popen(
                ["ip", "netns", "exec", space, "unshare", "--mount", "--uts", "sh", "-c", script],
                start_new_session=True,
            )
            self._anchors.append(anchor)
            deadline = time.monotonic() + 30
            while not ready.exists():
                assert anchor.poll() is None, f"the host {name} did not start"
                assert time.monotonic() < deadline
                time.sleep(0.02)
            self._hosts[name] = Host(name, address, anchor.pid, folders[name], self._ahead.get(name))

    def _know_the_way(self, space: str) -> None:
        """Keep sending to a server that is `away`, as to one behind a router: no word that it is gone."""
        [link] = json.loads(_ip("-j", "link", "show", self._bridge))
        for address in (STORAGE, METASTORE, BROKER):
            way = ["lladdr", link["address"], "nud", "permanent"]
            _ip("-n", space, "neigh", "replace", address, *way, "dev", "eth0")

    def _tear_down(self) -> None:
        """Also of a test that was killed: everything has a name of its own."""
        for space in _spaces():
            for pid in _ip("netns", "pids", space, may_fail=True).split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            _ip("netns", "del", space, may_fail=True)
            _ip("link", "del", space, may_fail=True)
        _ip("link", "del", self._bridge, may_fail=True)
        for anchor in self._anchors:
            anchor.wait()
        self._anchors, self._hosts = [], {}


def _spaces() -> list[str]:
    """The network namespaces of this number."""
    names = (line.split()[0] for line in _ip("netns").splitlines() if line)
    return [name for name in names if name.startswith(_PREFIX)]


def _ip(*arguments: str, may_fail: bool = False) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    assert may_fail or done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def program(lines: Sequence[str]) -> str:
    """A program in bash."""
    return "\n".join(["#!/usr/bin/env bash", "set -euo pipefail", *lines, ""])
