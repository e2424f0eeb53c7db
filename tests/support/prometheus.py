"""Prometheus and its tool, of the Debian package: a real server that scrapes, and the checks of promtool."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from drawdown.processes.ports import free_ports

_SECONDS = 30.0


def promtool(*arguments: str, given: bytes | None = None) -> str:
    """Run it; return what it says, and fail with that."""
    done = subprocess.run(
        ["promtool", *arguments], input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    assert done.returncode == 0, done.stdout.decode()
    return done.stdout.decode()


class Prometheus:
    """A server that scrapes one address every second."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    def ask(self, query: str) -> list[dict[str, Any]]:
        """Return what the query gives now."""
        with urllib.request.urlopen(
            f"{self._url}/query?{urllib.parse.urlencode({'query': query})}", timeout=10
        ) as response:
            return list(json.load(response)["data"]["result"])

    def wait_for(self, query: str) -> list[dict[str, Any]]:
        """Return what the query gives, once it gives something."""
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            try:
                if found := self.ask(query):
                    return found
            except OSError:
                pass  # it is still starting
            time.sleep(0.2)
        raise AssertionError(f"nothing for {query}")


@contextmanager
def prometheus(folder: Path, address: str, token: str) -> Iterator[Prometheus]:
    """Start a server in this folder that scrapes `host:port` as docs/metrics.md shows."""
    port = free_ports(1)[0]
    config = folder / "prometheus.yml"
    (folder / "token").write_text(token)
    config.write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "1s"},
                "scrape_configs": [
                    {
                        "job_name": "drawdown",
                        "metrics_path": "/drawdown/metrics",
                        "authorization": {"credentials_file": str(folder / "token")},
                        "static_configs": [{"targets": [address]}],
                    }
                ],
            }
        )
    )
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data"]
    with (folder / "prometheus.log").open("wb") as log:
        server = subprocess.Popen(
            [*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        yield Prometheus(port)
    finally:
        server.terminate()
        server.wait(20)
