"""A proxy in front of a real S3 server that hurts the requests a test names.

Clients sign for the proxy's address: it forwards the Host header unchanged, so that signatures stay valid.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import inf
from types import TracebackType
from typing import Self, cast
from urllib.parse import urlsplit

from drawdown.processes.ports import LOOPBACK
from tests.support.s3_requests import Kind, S3Request, counted
from tests.support.s3_servers import S3Endpoint

_BLOCK = 65536
_OF_ONE_HOP = ("connection", "keep-alive", "transfer-encoding", "expect", "proxy-connection")
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Refuse:
    """The request is answered with an error and does not reach the server."""

    status: int
    code: str
    message: str = "as the test wants it"


SLOW_DOWN = Refuse(503, "SlowDown", "Please reduce your request rate.")
INTERNAL_ERROR = Refuse(500, "InternalError", "We encountered an internal error. Please try again.")
ACCESS_DENIED = Refuse(403, "AccessDenied", "Access Denied")
# 400 is what S3 says; services with other protocols say 403.
EXPIRED_TOKEN = Refuse(400, "ExpiredToken", "The provided token has expired.")


@dataclass(frozen=True)
class Delay:
    """The request waits at the proxy; for the client it times out when that is longer than it waits."""

    seconds: float


@dataclass(frozen=True)
class Reset:
    """The connection is reset when the server has got this much of the body, and never all of it."""

    after: int = 0


@dataclass(frozen=True)
class LoseAnswer:
    """The server does what it is asked, and the connection is reset instead of its answer."""


@dataclass(frozen=True)
class Strip:
    """The server does not see these headers. For Moto: a client signs them, and a stricter server says no."""

    headers: tuple[str, ...] = ("if-none-match", "if-match")


Effect = Refuse | Delay | Reset | LoseAnswer | Strip


@dataclass
class Rule:
    """What happens to which requests. Of several rules for a request the first that ends it wins.

    Attributes:
        kinds: of the requests; empty: of any kind.
        key: a pattern, ``*`` also stands for slashes; of a LIST it is held against the prefix.
        skip: how many of these requests pass first.
        times: how many are hurt then.
        starts_in: seconds from when the rule is added.
        struck: how many requests were hurt by now.
    """

    effect: Effect
    kinds: Collection[Kind] = ()
    key: str = "*"
    skip: int = 0
    times: float = inf
    starts_in: float = 0.0
    struck: int = 0
    _starts_at: float = field(default=0.0, repr=False)

    def strikes(self, request: S3Request) -> bool:
        """Whether it is this request's turn; counts it."""
        if not request.concerns(self.key) or (self.kinds and request.kind not in self.kinds):
            return False
        if time.monotonic() < self._starts_at or self.struck >= self.times:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.struck += 1
        return True


class Cut(Exception):
    """The connection ends here, by a reset."""


class S3Proxy(S3Endpoint):
    """``with S3Proxy(server) as proxy``: an endpoint of its own, with the server's keys and buckets."""

    def __init__(self, server: S3Endpoint, host: str = LOOPBACK) -> None:
        self.access_key, self.secret_key, self.region = server.access_key, server.secret_key, server.region
        self.upstream = urlsplit(server.endpoint).netloc
        self.closing = threading.Event()
        self._seen: list[S3Request] = []
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        self._away_until = 0.0
        self._listener = _Listener(self, host)
        self.endpoint = f"http://{host}:{self._listener.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._listener.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._listener.shutdown()
        self._listener.server_close()
        self._listener.cut_all()

    def add(self, rule: Rule) -> Rule:
        """Hurt requests from now on as the rule says; return it, for its count and for ``remove``."""
        with self._lock:
            rule._starts_at = time.monotonic() + rule.starts_in
            self._rules.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        """Let the rule's requests pass again."""
        with self._lock:
            self._rules.remove(rule)

    def clear(self) -> None:
        """Let everything pass again: no rules, storage at hand."""
        with self._lock:
            self._rules.clear()
            self._away_until = 0.0

    def away(self, seconds: float = inf) -> None:
        """Cut all connections, and each new one at once, for so long or until ``clear``."""
        with self._lock:
            self._away_until = time.monotonic() + seconds
        self._listener.cut_all()

    def require_near(self) -> None:
        """Raise Cut while storage is away, or when the proxy ends."""
        if self.closing.is_set() or time.monotonic() < self._away_until:
            raise Cut

    def effects(self, request: S3Request) -> list[Effect]:
        """Note a request and return what happens to it: what it survives, then at most one end."""
        with self._lock:
            self._seen.append(request)
            found: list[Effect] = []
            for rule in self._rules:
                if rule.strikes(request):
                    found.append(rule.effect)
                    if not isinstance(rule.effect, Delay | Strip):
                        break
            return found

    def seen(self, key: str = "*") -> list[S3Request]:
        """Return all requests since ``mark`` with such keys, also those that no server got."""
        with self._lock:
            return [request for request in self._seen if request.concerns(key)]

    def requests(self, key: str = "*") -> Counter[Kind]:
        return counted(self.seen(key))

    def mark(self) -> None:
        with self._lock:
            self._seen.clear()


class _Listener(ThreadingHTTPServer):
    """Accepts connections and keeps them, to be able to cut all of them."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, proxy: S3Proxy, host: str) -> None:
        self.proxy = proxy
        self._open: set[socket.socket] = set()
        super().__init__((host, 0), _Handler)

    def process_request(self, request: socket.socket, client_address: tuple[str, int]) -> None:  # type: ignore[override]
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that went away: a test sees what it got itself."""

    def cut_all(self) -> None:
        """Wake the thread of every connection that waits for its client; it then finds that it is cut."""
        for connection in list(self._open):
            # Not for writing too: that would tell the client of an orderly end.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RD)


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _serve(self) -> None:
        try:
            self._hurt_or_forward()
        except (Cut, OSError, HTTPException):
            self._reset()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

    def log_message(self, format: str, *arguments: object) -> None:
        """Write no log."""

    @property
    def _proxy(self) -> S3Proxy:
        return cast("_Listener", self.server).proxy

    def _hurt_or_forward(self) -> None:
        proxy = self._proxy
        proxy.require_near()
        # Not self.path, in which slashes at the beginning are made one.
        target = self.requestline.split()[1]
        left_out: set[str] = {*_OF_ONE_HOP}
        end: Effect | None = None
        for effect in proxy.effects(S3Request.of(self.command, target)):
            if isinstance(effect, Delay):
                proxy.closing.wait(effect.seconds)
            elif isinstance(effect, Strip):
                left_out |= {*effect.headers}
            else:
                end = effect
        proxy.require_near()
        if isinstance(end, Refuse):
            self._refuse(end)
            return
        if isinstance(end, Reset) and not self._length():
            raise Cut
        upstream = HTTPConnection(proxy.upstream, timeout=600)
        try:
            self._forward(upstream, target, left_out, self._cut_after(end))
            answer = upstream.getresponse()
            proxy.require_near()
            if isinstance(end, LoseAnswer):
                answer.read()
                raise Cut
            self._pass_on(answer)
        finally:
            upstream.close()

    def _forward(
        self, upstream: HTTPConnection, target: str, left_out: set[str], cut_after: int | None
    ) -> None:
        upstream.putrequest(self.command, target, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in left_out:
                upstream.putheader(name, value)
        upstream.putheader("Connection", "close")
        chunked = self._is_chunked()
        if chunked:
            upstream.putheader("Transfer-Encoding", "chunked")
        upstream.endheaders()
        sent = 0
        for block in self._body():
            if cut_after is not None and sent + len(block) > cut_after:
                upstream.send(block[: cut_after - sent])
                raise Cut
            upstream.send(b"%x\r\n%b\r\n" % (len(block), block) if chunked else block)
            sent += len(block)
        if cut_after is not None:
            raise Cut
        if chunked:
            upstream.send(b"0\r\n\r\n")

    def _cut_after(self, end: Effect | None) -> int | None:
        """Return how much of the body the server gets: all (None), or less than all."""
        return min(end.after, self._length() - 1) if isinstance(end, Reset) else None

    def _length(self) -> int:
        """Return the body's length; of one in chunks, whose end the server does not see, one beyond all."""
        return sys.maxsize if self._is_chunked() else int(self.headers.get("Content-Length", 0))

    def _body(self) -> Iterator[bytes]:
        if not self._is_chunked():
            left = self._length()
            while left:
                block = self._read(min(left, _BLOCK))
                left -= len(block)
                yield block
            return
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            yield self._read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            continue  # trailers are no part of the body

    def _read(self, size: int) -> bytes:
        block = self.rfile.read(size)
        if len(block) < size:
            raise Cut  # the client itself has gone
        return block

    def _is_chunked(self) -> bool:
        return "chunked" in self.headers.get("Transfer-Encoding", "").lower()

    def _refuse(self, refusal: Refuse) -> None:
        for _ in self._body():
            continue  # else the client would still be writing, and not read
        said = f"<Error><Code>{refusal.code}</Code><Message>{refusal.message}</Message></Error>".encode()
        self.send_response_only(refusal.status, HTTPStatus(refusal.status).phrase)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(said)

    def _pass_on(self, answer: HTTPResponse) -> None:
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in _OF_ONE_HOP:
                self.send_header(name, value)
        # Of a body without a length the end must be told in another way.
        chunked = answer.length is None and self.command != "HEAD"
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while block := answer.read(_BLOCK):
            self._proxy.require_near()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(block), block) if chunked else block)
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _reset(self) -> None:
        """End the connection by a reset instead of an orderly end."""
        self.close_connection = True
        with suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            os.close(self.connection.detach())
