"""A project with a cluster profile of `kind: commands`: with the programs of the docs, or with small ones."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from drawdown.launch.commands.request import CommandsRequest
from drawdown.metastore.records import StartedCluster
from drawdown.spec import CommandsCluster
from tests.support.sandbox import Sandbox

DOCS = Path(__file__).parents[2] / "docs" / "clusters.md"
PROGRAMS = ("up", "alive", "down")
PROFILE = """
clusters:
  local: {{kind: local}}
  cellar:
    kind: commands
    up: clusters/up
    alive: clusters/alive
    down: clusters/down
    workers: {workers}
    worker_memory: 600m
    {more}
"""
KEY = "flights.scheduled__2024-01-01T00:00:00+00:00"
SECRET = "hcloud-5f0e-4711"


def of_the_docs(root: Path) -> dict[str, Path]:
    """Write the three programs that docs/clusters.md shows, but with their state in the test's folder."""
    texts = {
        name: re.findall(rf"`clusters/{name}`:\n\n```bash\n(.*?)```", DOCS.read_text(), re.DOTALL)[0]
        for name in PROGRAMS
    }
    return written(
        root, {name: text.replace("$HOME/.local/state", f"{root}/state") for name, text in texts.items()}
    )


def state_of(root: Path) -> Path:
    """Where these programs keep a folder for each cluster."""
    return root / "state" / "drawdown-cellar"


def written(root: Path, texts: Mapping[str, str]) -> dict[str, Path]:
    """Write programs, executable, below `clusters`."""
    folder = root / "clusters"
    folder.mkdir(exist_ok=True)
    paths = {name: folder / name for name in texts}
    for name, text in texts.items():
        paths[name].write_text(text)
        paths[name].chmod(0o755)
    return paths


class Cellar:
    """A project whose programs are small: each notes its call, then does what a test says."""

    def __init__(self, root: Path, more: str = "shared_disk: true") -> None:
        self.sandbox = Sandbox(root, more=PROFILE.format(workers=2, more=more))
        self.root = root
        self.calls_file = root / "calls"
        self.let(up="exit 1", alive="exit 0", down="exit 0")

    def let(self, **does: str) -> None:
        """Let programs do this, in bash."""
        noted = f'echo "$(basename "$0") $DRAWDOWN_CLUSTER_RUN" >>{self.calls_file}'
        written(self.root, {name: f"#!/usr/bin/env bash\n{noted}\n{text}\n" for name, text in does.items()})

    def calls(self) -> list[str]:
        """The programs that were called, in order."""
        if not self.calls_file.exists():
            return []
        called = [line.split(" ", 1) for line in self.calls_file.read_text().splitlines()]
        assert {key for _, key in called} <= {KEY}
        return [name for name, _ in called]

    def request(self) -> CommandsRequest:
        project = self.sandbox.project
        profile = project.clusters["cellar"]
        assert isinstance(profile, CommandsCluster)
        return CommandsRequest(project, "cellar", profile, KEY, 2, {"dag_id": "flights"})

    def recorded(self) -> StartedCluster | None:
        """The newest record of the run, if there is one."""
        with self.sandbox.metastore() as metastore:
            found = metastore.clusters.of_key(KEY)
        return found[-1] if found else None

    def guards(self) -> list[int]:
        """Process ids of the guards of this project."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                command = (process / "cmdline").read_bytes().decode().split("\0")
                if "drawdown.launch.commands.guard" in command and str(self.root) in command:
                    found.append(int(process.name))
        return found


@contextmanager
def listening() -> Iterator[int]:
    """A port that accepts connections, in place of a master."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def prints(port: int, more: str = "") -> str:
    """`up` that names a master at this port."""
    return f"""echo '{{"master": "spark://127.0.0.1:{port}"{more}}}'"""
