"""Real S3 servers for tests: one in memory that starts in seconds, one with files on disk.

Both honour ``If-None-Match`` and ``If-Match``. Only the second one checks signatures, and only its objects
survive a stop. Either ends with this process, however that ends.
"""

from __future__ import annotations

import re
import secrets
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from urllib.parse import quote

from dev.test_programs import MOTO
from drawdown.processes.ports import LOOPBACK
from tests.support.go_programs import VERSITYGW, built
from tests.support.s3_client import S3Client
from tests.support.s3_requests import Kind, S3Request, counted
from tests.support.server_process import ServerProcess

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


class S3Server(ServerProcess, S3Endpoint):
    """A server of this machine: ``with Moto() as s3``. Its folder is removed when it ends."""

    def __init__(self, host: str = LOOPBACK) -> None:
        super().__init__(host)
        self.access_key, self.secret_key = f"AK{secrets.token_hex(9).upper()}", secrets.token_hex(20)
        self._marked = 0

    def requests(self, key: str = "*") -> Counter[Kind]:
        return counted(self._logged(self.log()[self._marked :]), key)

    def mark(self) -> None:
        self._marked = len(self.log())

    @abstractmethod
    def _logged(self, log: str) -> Iterator[S3Request]:
        """Yield the requests that a piece of the server's log is about."""


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
