"""fake-gcs-server behind a gateway, a server with both APIs of Google Cloud Storage, for ``gs://``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from drawdown.processes.ports import LOOPBACK
from tests.support.go_programs import FAKE_GCS, built
from tests.support.server_process import ServerProcess

TIMEOUT = 60.0
GATEWAY = Path(__file__).with_name("gcs_gateway.py")

_names = count(1)


class GcsRefusal(Exception):
    """An answer that says no; its text begins with the status."""


class FakeGcs(ServerProcess):
    """The server itself: objects are in its memory, and everybody may use it."""

    def _command(self, port: int) -> Sequence[str | Path]:
        here = ("-external-url", self.endpoint, "-public-host", urlsplit(self.endpoint).netloc)
        where = ("-scheme", "http", "-host", self._host, "-port", str(port))
        return [built(FAKE_GCS), *where, *here, "-backend", "memory"]


class GcsServer(ServerProcess):
    """``with GcsServer() as gcs``: a gateway that adds what the server behind it lacks (`gcs_gateway`).

    Args:
        account: only who has a key of this service account may ask for anything; without one, everybody may.
    """

    project = "drawdown-tests"

    def __init__(self, host: str = LOOPBACK, account: str = "") -> None:
        super().__init__(host)
        self._behind, self._account = FakeGcs(host), account

    def bucket(self) -> str:
        """Make an empty bucket and return its name, which no other bucket of this process has."""
        name = f"bucket-{next(_names)}"
        body = json.dumps({"name": name}).encode()
        self._accepted("POST", f"/storage/v1/b?project={self.project}", body)
        return name

    def key_file(self, folder: Path, account: str) -> Path:
        """Write the JSON file of a service account's new key, whose tokens come from this server."""
        private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        said = {
            "type": "service_account",
            "project_id": self.project,
            "private_key_id": "1",
            "private_key": pem.decode(),
            "client_email": account,
            "client_id": "1",
            "token_uri": f"{self.endpoint}/token",
        }
        file = folder / "key.json"
        file.write_text(json.dumps(said))
        return file

    def client(self, bucket: str) -> GcsClient:
        """Return a client of a bucket."""
        return GcsClient(self, bucket)

    def tags(self, bucket: str, prefix: str = "") -> dict[str, tuple[str, str]]:
        """Return the tag of the content, and the time, of all objects."""
        return {each["name"]: (each["etag"], each["updated"]) for each in self._listed(bucket, prefix)}

    def put(self, bucket: str, key: str, body: bytes) -> None:
        """Write an object."""
        self._accepted("POST", self._upload(bucket, key), body)

    def put_new(self, bucket: str, key: str, body: bytes) -> bool:
        """Write an object if there is none, and return whether this request wrote it."""
        status, said = self.send("POST", f"{self._upload(bucket, key)}&ifGenerationMatch=0", body)
        if status == 412:
            return False
        _require_accepted(status, said)
        return True

    def get(self, bucket: str, key: str) -> bytes:
        """Return an object's content."""
        return self._accepted("GET", f"/storage/v1/b/{bucket}/o/{quote(key, safe='')}?alt=media")

    def delete(self, bucket: str, key: str) -> None:
        """Remove an object."""
        self._accepted("DELETE", f"/storage/v1/b/{bucket}/o/{quote(key, safe='')}")

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """Return the keys of all objects."""
        return [each["name"] for each in self._listed(bucket, prefix)]

    def _listed(self, bucket: str, prefix: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        query = {"prefix": prefix}
        while True:
            page = json.loads(self._accepted("GET", f"/storage/v1/b/{bucket}/o?{urlencode(query)}"))
            found += page.get("items", [])
            if not (token := page.get("nextPageToken")):
                return found
            query["pageToken"] = token

    def send(self, method: str, target: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send one request past the gateway, on a connection of its own; return status and body."""
        connection = HTTPConnection(urlsplit(self._behind.endpoint).netloc, timeout=TIMEOUT)
        try:
            connection.request(method, target, body, {"Content-Type": "application/octet-stream"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _accepted(self, method: str, target: str, body: bytes = b"") -> bytes:
        status, said = self.send(method, target, body)
        _require_accepted(status, said)
        return said

    def _upload(self, bucket: str, key: str) -> str:
        return f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(key, safe='')}"

    def start(self) -> None:
        self._behind.start()
        super().start()

    def stop(self) -> None:
        super().stop()
        self._behind.stop()

    def __exit__(self, *how: Any) -> None:
        super().__exit__(*how)
        self._behind.__exit__(*how)

    def _command(self, port: int) -> Sequence[str | Path]:
        upstream = urlsplit(self._behind.endpoint).netloc
        return [sys.executable, GATEWAY, self._host, str(port), upstream, *filter(None, [self._account])]


@dataclass(frozen=True)
class GcsClient:
    """What tests prepare and look at in one bucket."""

    server: GcsServer
    bucket: str

    def put(self, key: str, body: bytes = b"") -> None:
        self.server.put(self.bucket, key, body)

    def get(self, key: str) -> bytes:
        return self.server.get(self.bucket, key)

    def delete(self, key: str) -> None:
        self.server.delete(self.bucket, key)

    def keys(self, prefix: str = "") -> list[str]:
        return self.server.keys(self.bucket, prefix)


def _require_accepted(status: int, said: bytes) -> None:
    if status >= 300:
        raise GcsRefusal(f"{status} {said.decode(errors='replace')}")
