"""Real S3 servers for tests: one in memory that starts in seconds, one with files on disk.

Both honour ``If-None-Match`` and ``If-Match``. Only the second one checks signatures, and only its objects
survive a stop. Either ends with this process, however that ends.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from dev.test_programs import MOTO
from drawdown.processes.background import Background, last_lines
from drawdown.processes.ports import LOOPBACK, free_ports
from tests.support.go_programs import VERSITYGW, built
from tests.support.s3_client import S3Client
from tests.support.s3_requests import Kind, S3Request, counted

START_TIMEOUT = 60.0

_names = count(1)


class S3Endpoint(ABC):
    """An address that speaks S3, and whoever may use it: a server, or a proxy in front of one.

    Attributes:
        endpoint: ``http://host:port``; buckets are in the path.
    """

    region = "us-east-1"
    endpoint: str
    access_key: str
    secret_key: str

    def client(self, bucket: str) -> S3Client:
        """Return a client of a bucket."""
        return S3Client(self.endpoint, bucket, self.access_key, self.secret_key, self.region)

    def bucket(self) -> str:
        """Make an empty bucket and return its name, which no other bucket of this process has."""
        name = f"bucket-{next(_names)}"
        self.client(name).send("PUT").accepted()
        return name

    @abstractmethod
    def requests(self, key: str = "*") -> Counter[Kind]:
        """Return how many requests of each kind with such keys (of a LIST: prefixes) came since ``mark``."""

    @abstractmethod
    def mark(self) -> None:
        """Count requests from here on."""


class S3Server(S3Endpoint):
    """A server of this machine: ``with Moto() as s3``. Its folder is removed when it ends."""

    def __init__(self, host: str = LOOPBACK) -> None:
        self.access_key, self.secret_key = f"AK{secrets.token_hex(9).upper()}", secrets.token_hex(20)
        self._host, self._port = host, 0
        self.folder = Path(tempfile.mkdtemp(prefix="drawdown-s3-"))
        self._background = Background(type(self).__name__.lower(), self.folder)
        self._marked = 0

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
        """Start, on its earlier port or a free one, and wait until it answers."""
        self._port = self._port or free_ports(1)[0]
        self.endpoint = f"http://{self._host}:{self._port}"
        # What is set for a client could change a server.
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AWS_", "MOTO_", "VGW_"))
        }
        self._background.start([*map(str, self._command(self._port))], {**kept, **self._environment()})
        deadline = time.monotonic() + START_TIMEOUT
        while not self._answers():
            self._background.require_alive()
            assert time.monotonic() < deadline, f"no answer: {last_lines(self._background.log)}"
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop; ``start`` starts it again at the same address."""
        self._background.stop()

    def requests(self, key: str = "*") -> Counter[Kind]:
        return counted(self._logged(self._log()[self._marked :]), key)

    def mark(self) -> None:
        self._marked = len(self._log())

    @abstractmethod
    def _command(self, port: int) -> Sequence[str | Path]:
        """Return what starts the server in the foreground."""

    @abstractmethod
    def _environment(self) -> Mapping[str, str]:
        """Return what the server's environment has beside this process's own."""

    @abstractmethod
    def _logged(self, log: str) -> Iterator[S3Request]:
        """Yield the requests that a piece of the server's log is about."""

    def _log(self) -> str:
        return self._background.log.read_text(errors="replace")

    def _answers(self) -> bool:
        """Whether it answers anything at all: without a signature, some say no."""
        connection = HTTPConnection(self._host, self._port, timeout=5)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status < 500
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


class Moto(S3Server):
    """moto's server: objects are in its memory, and no signature is checked. It also speaks EMR."""

    def _command(self, port: int) -> Sequence[str | Path]:
        # -S: of this environment's packages it sees none.
        return [sys.executable, "-S", "-m", "moto.server", "-H", self._host, "-p", str(port)]

    def _environment(self) -> Mapping[str, str]:
        return {"PYTHONPATH": str(MOTO)}

    def _logged(self, log: str) -> Iterator[S3Request]:
        """Read lines like ``127.0.0.1 - - [now] "PUT /bucket/key HTTP/1.1" 200 -``, which have colours."""
        for method, target in re.findall(r"([A-Z]+) (/\S*) HTTP/", log):
            yield S3Request.of(method, target)


class Versitygw(S3Server):
    """versitygw: objects are files, ``objects/<bucket>/<key>``, which a test may also write itself."""

    def __init__(self, host: str = LOOPBACK) -> None:
        super().__init__(host)
        self.objects = self.folder / "objects"
        self.objects.mkdir()

    def _command(self, port: int) -> Sequence[str | Path]:
        return [
            *(built(VERSITYGW), "--port", f"{self._host}:{port}", "--region", self.region),
            *("posix", self.objects),
        ]

    def _environment(self) -> Mapping[str, str]:
        return {"ROOT_ACCESS_KEY": self.access_key, "ROOT_SECRET_KEY": self.secret_key}

    def _logged(self, log: str) -> Iterator[S3Request]:
        """Read lines like ``20:29:05 | vgw | 200 | 21µs | 127.0.0.1 | GET | /bucket | - | list-type=2``."""
        for method, path, query in re.findall(r"\| ([A-Z]+) \| (/.*) \| [^|\n]* \| (\S*)", log):
            yield S3Request.of(method, f"{quote(path)}?{query}")
