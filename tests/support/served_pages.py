"""The pages on a port of this machine, for a browser: Drawdown's application without Airflow around it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from drawdown.processes.ports import LOOPBACK, free_ports


@contextmanager
def served_pages() -> Iterator[str]:
    """The address below which the pages are, for the rights that a test gives; it ends with the block."""
    from drawdown.airflow.pages.app import app

    outer = FastAPI()
    outer.mount("/drawdown", app)
    [port] = free_ports(1)
    server = uvicorn.Server(uvicorn.Config(outer, host=LOOPBACK, port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    try:
        yield f"http://{LOOPBACK}:{port}/drawdown"
    finally:
        server.should_exit = True
        thread.join()
