"""Call one program of the project: which file it is, what it gets, for how long, and what it said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from drawdown.errors import SpecError
from drawdown.jvm.spark_home import spark_home
from drawdown.launch.environment import for_spark, passed_by
from drawdown.processes.descendants import end_with_parent
from drawdown.spec import Project
from drawdown.spec.reading.secrets import holds_a_secret, names_a_secret

_LOOK_EVERY = 0.1
_MOST_BYTES = 64 * 1024
_LAST_LINES = 5
_SHORTEST_SECRET = 4
"""Shorter values are not taken out of an error: they would be found in the middle of words."""


@dataclass(frozen=True)
class Said:
    """How a call ended.

    Attributes:
        code: None when the program was killed.
        output: its standard output.
        why: what went wrong, with its last lines; empty when nothing did.
    """

    code: int | None
    output: str
    why: str


@dataclass(frozen=True)
class Program:
    """A program with the environment that it gets, ready to be called.

    Attributes:
        name: its key in the profile: `up`, `alive` or `down`.
        hidden: texts that no error shows.
    """

    name: str
    path: Path
    folder: Path
    environment: Mapping[str, str]
    hidden: tuple[str, ...]

    def call(self, seconds: float, give_up: Callable[[], bool] = lambda: False) -> Said:
        """Run it until it ends, its time is up, or `give_up` holds; then its process group is killed.

        What it has started in the background goes on when it ends by itself.
        """
        # Files, not pipes: a daemon that it leaves running would keep a pipe open.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(
                [str(self.path)],
                cwd=self.folder,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
            deadline = time.monotonic() + seconds
            why = ""
            while process.poll() is None and not why:
                time.sleep(_LOOK_EVERY)
                if give_up():
                    why = "was stopped"
                elif time.monotonic() > deadline:
                    why = f"had not ended after {seconds:g} s, and was killed"
            if why:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return Said(None, _text(out), self._shown(why, out, err))
            why = f"ended with exit code {process.returncode}" if process.returncode else ""
            return Said(process.returncode, _text(out), self._shown(why, out, err))

    def _shown(self, why: str, out: IO[bytes], err: IO[bytes]) -> str:
        """Return the sentence with the last lines that the program wrote, without secrets."""
        said = _text(err, last=True).strip() or _text(out, last=True).strip()
        lines = [line.strip() for line in said.splitlines() if line.strip()][-_LAST_LINES:]
        text = f"{why}: {' | '.join(lines)}" if lines and why else why
        for secret in self.hidden:
            text = text.replace(secret, "***")
        return text


def program(
    project: Project, name: str, relative: str, more: Mapping[str, str], passed: list[str]
) -> Program:
    """Return a program of the project.

    Args:
        more: variables that are set for it.
        passed: names of variables of this process that it gets, besides those that drivers get.

    Raises:
        SpecError: ``cluster.command``.
    """
    root = project.root.resolve()
    given = for_spark(os.environ, [*passed_by(project), *passed])
    secret = [os.environ.get(each, "") for each in passed]
    secret += [value for key, value in given.items() if names_a_secret(key) or holds_a_secret(value)]
    hidden = sorted({each for each in secret if len(each) >= _SHORTEST_SECRET}, key=len, reverse=True)
    environment = {
        **given,
        "SPARK_HOME": str(spark_home()),
        "PYSPARK_PYTHON": sys.executable,
        "DRAWDOWN_PROJECT": str(root),
        **more,
    }
    return Program(name, executable(project, name, relative), root, environment, tuple(hidden))


def executable(project: Project, name: str, relative: str) -> Path:
    """Return the file of a program, which must be the project's own.

    Raises:
        SpecError: ``cluster.command``.
    """
    root = project.root.resolve()
    path = root / relative
    if not path.resolve().is_relative_to(root):
        what, do = "is a link out of the project", "put the program itself into the project"
    elif not path.is_file():
        what, do = "does not exist", "write it, or correct the path, which begins at the project root"
    elif not os.access(path, os.X_OK):
        what, do = "is not executable", f"chmod +x {relative}"
    else:
        return path
    raise SpecError(
        "cluster.command", f"`{name}:` of a cluster names {relative}, which {what}",
        where="include/project.yaml", do=do,
    )  # fmt: skip


def _text(file: IO[bytes], *, last: bool = False) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _MOST_BYTES) if last else 0)
    return file.read(_MOST_BYTES).decode(errors="replace")
