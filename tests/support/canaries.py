"""Words that stand for passwords, and a project whose commands are watched for them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Place:
    """A project, its metastore on a server, and the words that must not be found."""

    root: Path
    environment: dict[str, str]
    canaries: tuple[str, ...]
    metastore_url: str = ""

    def command(self, *arguments: str) -> tuple[int, str]:
        """A `drawdown` command: its exit code and all it printed; its processes are watched."""
        process = subprocess.Popen(
            [sys.executable, "-c", "from drawdown.cli.main import main; main()", *arguments],
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        seen: set[bytes] = set()
        watching = threading.Thread(target=self._look_at_command_lines, args=(process, seen))
        watching.start()
        printed, _ = process.communicate(timeout=300)
        watching.join()
        assert not [line for line in seen if self.found(line)]
        self.lines_seen = seen
        return process.returncode, printed

    def found(self, content: bytes | str) -> bool:
        text = content.encode() if isinstance(content, str) else content
        return any(canary.encode() in text for canary in self.canaries)

    def files_with_one(self) -> list[Path]:
        """Files of the project that hold one of the words."""
        files = [path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink()]
        return [path for path in files if self.found(path.read_bytes())]

    def _look_at_command_lines(self, process: subprocess.Popen[str], seen: set[bytes]) -> None:
        while process.poll() is None:
            for path in Path("/proc").glob("[0-9]*"):
                try:
                    if os.getsid(int(path.name)) == process.pid:
                        seen.add((path / "cmdline").read_bytes())
                except OSError:
                    continue
            time.sleep(0.1)
