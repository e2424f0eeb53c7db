"""Services of docker-compose.yaml as processes of this machine, and secrets as `make env` makes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dev.deployment_env import write_env
from drawdown.processes.background import Background
from tests.support.compose import ROOT, resolved


def made_secrets(folder: Path) -> dict[str, str]:
    """The lines of an .env that `make env` would write."""
    (folder / ".env.example").write_text((ROOT / ".env.example").read_text())
    lines = write_env(folder).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


class Native:
    """The compose file's services on this machine, every text in it `moved` there."""

    def __init__(self, folder: Path, secrets: Mapping[str, str], moved: Mapping[str, str]) -> None:
        text = json.dumps(resolved(secrets)["services"])
        for there, here in moved.items():
            assert there in text, there
            text = text.replace(there, here)
        self._services: dict[str, dict[str, Any]] = json.loads(text)
        self._folder = folder

    def environment(self, name: str, more: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
        """Of one service: what the image sets, then what the compose file sets."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW")}
        programs = Path(sys.executable).parent
        image = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
            "AIRFLOW_HOME": str(self._folder / "airflow"),
            "DRAWDOWN_PROJECT": str(ROOT),
            "DRAWDOWN_STORAGE": str(self._folder / "storage"),
        }
        return {**inherited, **image, **self._services[name].get("environment", {}), **more}

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        """A service that ends by itself."""
        return subprocess.run(
            self._command(name, self._services[name]["command"]),
            env=self.environment(name),
            cwd=ROOT,  # the image's WORKDIR
            capture_output=True,
            text=True,
            check=False,
        )

    def start(self, name: str, more: Mapping[str, str]) -> Background:
        """A service that stays, with `more` in its environment."""
        started = Background(name, self._folder / "run")
        started.start(
            self._command(name, self._services[name]["command"], more), self.environment(name, more)
        )
        return started

    def is_well(self, name: str) -> bool:
        """What its health check says."""
        test = self._services[name]["healthcheck"]["test"][1:]
        command = self._command(name, test)
        done = subprocess.run(command, env=self.environment(name), capture_output=True, check=False)
        return done.returncode == 0

    def _command(
        self, name: str, words: list[str], more: Mapping[str, str] = MappingProxyType({})
    ) -> list[str]:
        """What runs the words of a service: here they are programs of this machine."""
        return words
