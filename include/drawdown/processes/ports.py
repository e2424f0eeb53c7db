"""Free TCP ports of this machine."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress
from ipaddress import ip_address

LOOPBACK = "127.0.0.1"

_ANSWERS_WITHIN = 5.0


def free_ports(count: int, host: str = LOOPBACK) -> list[int]:
    """Return ``count`` different ports that nothing listens on now; another process may still take one.

    Raises OSError when ``host`` is not an address of this machine.
    """
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((host, 0))
        return [each.getsockname()[1] for each in sockets]


def is_loopback(host: str) -> bool:
    """Whether only processes of this machine can reach the address."""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


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


def answers(host: str, port: int, within: float = _ANSWERS_WITHIN) -> bool:
    """Whether a server accepts a connection at this address; a name that is unknown counts as no."""
    try:
        socket.create_connection((host, port), timeout=within).close()
    except OSError:
        return False
    return True
