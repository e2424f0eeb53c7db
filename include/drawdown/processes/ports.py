"""Free TCP ports of this machine."""

from __future__ import annotations

import socket
from contextlib import ExitStack

LOOPBACK = "127.0.0.1"

_ANSWERS_WITHIN = 5.0


def free_ports(count: int) -> list[int]:
    """Return ``count`` different ports that nothing listens on now; another process may still take one."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [each.getsockname()[1] for each in sockets]


def listen_and_connect() -> None:
    """Raise OSError when processes of this machine cannot connect to each other.

    The loopback interface is down, or this user may not open a port. Binding a port can work even then.
    """
    with socket.create_server((LOOPBACK, 0)) as server:
        socket.create_connection(server.getsockname(), timeout=_ANSWERS_WITHIN).close()


def is_free(port: int) -> bool:
    """Whether a server could listen on ``port`` of the loopback interface."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
