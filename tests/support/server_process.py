"""A storage server of this machine as a process that ends with this one, however that ends."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from drawdown.processes.background import Background, last_lines
from drawdown.processes.ports import LOOPBACK, free_ports

START_TIMEOUT = 60.0
# What is set for a client could change a server.
_OF_CLIENTS = ("AWS_", "FAKE_GCS_", "GOOGLE_", "MOTO_", "STORAGE_", "VGW_")


class ServerProcess(ABC):
    """Started and stopped as a context manager; its folder is removed when it ends.

    Attributes:
        endpoint: ``http://host:port``.
    """

    def __init__(self, host: str = LOOPBACK) -> None:
        self.endpoint = ""
        self.folder = Path(tempfile.mkdtemp(prefix="drawdown-storage-"))
        self._host, self._port = host, 0
        self._background = Background(type(self).__name__.lower(), self.folder)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start, on its earlier port or a free one, and wait until it listens."""
        self._port = self._port or free_ports(1)[0]
        self.endpoint = f"http://{self._host}:{self._port}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OF_CLIENTS)}
        self._background.start([*map(str, self._command(self._port))], {**kept, **self._environment()})
        deadline = time.monotonic() + START_TIMEOUT
        while not self._listens():
            self._background.require_alive()
            assert time.monotonic() < deadline, f"no answer: {last_lines(self._background.log)}"
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop; ``start`` starts it again at the same address."""
        self._background.stop()

    def log(self) -> str:
        """Return what it has written to its console."""
        return self._background.log.read_text(errors="replace")

    @abstractmethod
    def _command(self, port: int) -> Sequence[str | Path]:
        """Return what starts the server in the foreground."""

    def _environment(self) -> Mapping[str, str]:
        """Return what the server's environment has beside this process's own."""
        return {}

    def _listens(self) -> bool:
        """Whether it takes connections. Not by a request, which would be counted."""
        try:
            socket.create_connection((self._host, self._port), timeout=5).close()
        except OSError:
            return False
        return True
