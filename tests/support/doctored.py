"""`drawdown doctor`, then the command that it names, then the doctor again, all in one surrounding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_PROGRAM = """
import json, subprocess, sys
about = sys.argv[1]

def found(before=""):
    command = before + "drawdown doctor --json"
    said = subprocess.run(command, shell=True, stdout=subprocess.PIPE).stdout.decode()
    return [each for each in json.loads(said)["data"] if each["about"] == about]

[before] = found()
# In one shell: what it says may be about the shell's environment.
print(json.dumps([before, *found("{ " + before["do"] + "\\n} 1>&2 || exit 1\\n")]))
"""


def doctored(
    folder: Path, about: str, inside: Sequence[str] = (), environment: Mapping[str, str] = os.environ
) -> list[dict[str, str]]:
    """The one finding about a thing, and those that are left once its command was typed.

    Args:
        inside: a program and its arguments that runs what follows them, differently.
    """
    path = f"{Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(
        [*inside, sys.executable, "-c", _PROGRAM, about],
        cwd=folder,
        env={**environment, "PATH": path},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found
