"""An HTTP service of recorded answers: it notes each call, answers as a test has set, forwards the rest."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

from drawdown.processes.ports import LOOPBACK


@dataclass(frozen=True)
class Answer:
    """What the service says, instead of the server behind it or (``lost``) after that has done the work.

    ``passed``: the server's own answer instead, this time.
    """

    status: int
    body: dict[str, Any]
    lost: bool = False
    passed: bool = False


@dataclass
class RecordedApi:
    """``with RecordedApi(behind) as api``: ``api.endpoint`` is its address.

    Attributes:
        behind: gets what has no recorded answer, by its address; None: ``own`` answers that.
        answers: by operation; the last one of a list stays.
        calls: the operations asked for, in order: AWS's names, or method and path.
    """

    behind: str | None = None
    own: Callable[[str, str, bytes], tuple[int, bytes]] | None = None
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    endpoint: str = ""

    def __enter__(self) -> Self:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                """Say nothing."""

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                target = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
                operation = target or f"{self.command} {urlsplit(self.path).path}"
                api.calls.append(operation)
                status, said = api.said(operation, (self.command, self.path, dict(self.headers)), body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        self._server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self.endpoint = f"http://{LOOPBACK}:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def said(self, operation: str, request: Sequence[Any], body: bytes) -> tuple[int, bytes]:
        """Return status and body of the answer."""
        left = self.answers.get(operation)
        answer = None if not left else left.pop(0) if len(left) > 1 else left[0]
        if answer is not None and answer.passed:
            answer = None
        if answer is not None and not answer.lost:
            return answer.status, json.dumps(answer.body).encode()
        method, path, headers = request
        if self.own is not None:
            return self.own(method, path, body)
        assert self.behind is not None
        connection = HTTPConnection(urlsplit(self.behind).netloc, timeout=60)
        connection.request(method, path, body, headers)
        got = connection.getresponse()
        status, said = got.status, got.read()
        connection.close()
        return (status, said) if answer is None else (answer.status, json.dumps(answer.body).encode())
