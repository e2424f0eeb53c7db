"""The command `drawdown` in a process of its own: run to its end, or watched line by line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

DRAWDOWN = [sys.executable, "-c", "from drawdown.cli.main import main; main()"]


def drawdown(folder: Path, *arguments: str, timeout: int = 240) -> subprocess.CompletedProcess[str]:
    """To its end."""
    return subprocess.run(
        [*DRAWDOWN, *arguments], cwd=folder, capture_output=True, text=True, timeout=timeout, check=False
    )


def answer(stdout: str) -> Any:
    """What a command with `--json` has answered, out of its envelope."""
    return json.loads(stdout)["data"]


class CommandLine:
    """A command that goes on as long as the block does; what it has said so far is in ``said``.

    Args:
        on: takes a command line and returns the one that runs it on another host.
    """

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        on: Callable[..., list[str]] = lambda *command: [*command],
        **environment: str,
    ) -> None:
        self.said: list[str] = []
        self._process = subprocess.Popen(
            on(*DRAWDOWN, *arguments),
            cwd=folder,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.pid = self._process.pid

    def __enter__(self) -> CommandLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def until(self, said: Callable[[str], bool]) -> str:
        """Read on to the first such line."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.said.append(line)
            if said(line):
                return line
        raise AssertionError("it ended before: " + "".join(self.said))

    def interrupted(self) -> int:
        """Ctrl-C at the terminal, then its exit code."""
        os.killpg(self._process.pid, signal.SIGINT)
        return self.ended(90)

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def ended_within(self, seconds: float) -> bool:
        """Whether it ends by itself in this time."""
        try:
            self.ended(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def ended(self, seconds: float) -> int:
        """Its exit code, once it has ended by itself."""
        rest, _ = self._process.communicate(timeout=seconds)
        self.said.append(rest)
        return self._process.returncode
