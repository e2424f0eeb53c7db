"""What receives alerts: a mail server and a webhook, both real, which can be away, refuse or hang."""

from __future__ import annotations

import json
import threading
from email import message_from_bytes
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from drawdown.processes.ports import free_ports


class MailServer:
    """Keeps the subject and the text of each mail, and what is HTML."""

    def __init__(self) -> None:
        self.mails: list[tuple[str, str]] = []
        self.htmls: list[str] = []
        self.port = free_ports(1)[0]
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        message = message_from_bytes(envelope.content, policy=default)  # type: ignore[arg-type]
        body = message.get_body(("plain", "html"))
        assert body is not None
        if (html := message.get_body(("html",))) is not None:
            self.htmls.append(str(html.get_content()))
        self.mails.append((str(message["subject"]), str(body.get_content())))
        return "250 OK"

    @property
    def address(self) -> str:
        return f"mailto://127.0.0.1:{self.port}?from=drawdown@example.org&to=duty@example.org&format=text"

    def __enter__(self) -> MailServer:
        self._controller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._controller.stop()


class Webhook:
    """Keeps the documents that are posted.

    Attributes:
        status: what it answers.
        hangs: while set, it answers nothing.
    """

    def __init__(self) -> None:
        self.documents: list[dict[str, Any]] = []
        self.status = 200
        self.hangs = threading.Event()
        self._end = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if outer.hangs.is_set():
                    outer._end.wait(60)
                    return
                if outer.status == 200:
                    outer.documents.append(document)
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def address(self) -> str:
        return f"json://someone:very-secret-word@127.0.0.1:{self._server.server_port}/hook?rto=1&cto=1"

    @property
    def said(self) -> list[tuple[str, str]]:
        """Title and text of each message."""
        return [(each["title"], each["message"]) for each in self.documents]

    def __enter__(self) -> Webhook:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._server.shutdown()
        self._thread.join(20)
        self._server.server_close()
