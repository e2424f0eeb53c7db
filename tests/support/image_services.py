"""Services of docker-compose.yaml in the built image: its programs and its user, the file's commands."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from types import MappingProxyType

from tests.support.image import Image
from tests.support.native_services import Native


class Contained(Native):
    """Into the container goes what the image and the compose file set, and nothing of this process's own."""

    def __init__(self, image: Image, secrets: Mapping[str, str], moved: Mapping[str, str]) -> None:
        super().__init__(image.folder, secrets, moved)
        self._image = image

    def said(self, name: str, *words: str) -> str:
        """What a program prints in the container of a service, as by `docker compose exec`."""
        command = self._command(name, [*words])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def add(self, variables: Mapping[str, str]) -> None:
        """Add to the environment of every service of Airflow, as a user does in the file."""
        for name, service in self._services.items():
            if name.startswith("airflow-"):
                service["environment"].update(variables)

    def environment(self, name: str, more: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
        """Of buildah, which hands none of it on."""
        return dict(os.environ)

    def _command(
        self, name: str, words: list[str], more: Mapping[str, str] = MappingProxyType({})
    ) -> list[str]:
        # With an engine tini is process 1; here it has to be told that it collects orphans.
        return self._image.command(
            words, {**self._services[name]["environment"], **more, "TINI_SUBREAPER": "1"}
        )
