"""The Dockerfile's image without a container engine: on Debian's own base, by buildah's chroot isolation.

Needs root and a Debian machine. What is made is below one folder and gone when the block ends.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from dev import debian
from drawdown.errors import MachineError
from drawdown.processes.background import last_lines
from tests.support.compose import ROOT

RELEASE = "bookworm"
"""Debian's release in the Dockerfile's default base."""
_SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
_INCLUDED = "python3,python3-venv,ca-certificates"
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_JAVA_CERTIFICATES = Path("/etc/ssl/certs/java/cacerts")
_SETTINGS = ("PIP_", "UV_")
"""Prefixes of what tells pip and uv on this machine where packages are."""


class Image:
    """``with Image(folder) as image``: the built image, and one container made from it.

    Attributes:
        root: where the files of the container are.

    Args:
        settings: lines of the build's secret `indexes`, beside this machine's own.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self._settings = settings
        self._log = folder / "build.log"
        self._container = ""

    def __enter__(self) -> Self:
        _require_tools()
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._build(self._base())
            self._container = self.buildah("from", "drawdown").strip()
            self.root = Path(self.buildah("mount", self._container).strip())
            self._entry_point = self.config()["Entrypoint"]
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for leftover in (["umount", "--all"], ["rm", "--all"], ["rmi", "--all", "--force"]):
            subprocess.run([*self._buildah(), *leftover], capture_output=True, check=False)
        # The storage's own folder is a mount too, which buildah leaves.
        for mounted in sorted(_mounts_below(self.folder), reverse=True):
            subprocess.run(["umount", "--lazy", mounted], capture_output=True, check=False)
        shutil.rmtree(self.folder)

    def buildah(self, *arguments: str | Path) -> str:
        """Run one command of buildah; returns what it printed."""
        command = [*self._buildah(), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stdout

    def config(self) -> dict[str, Any]:
        """What the image says about itself: `User`, `Env`, `Entrypoint`, `Cmd`."""
        found: dict[str, Any] = json.loads(self.buildah("inspect", "--type=image", "drawdown"))
        return dict(found["OCIv1"]["config"])

    def megabytes(self) -> int:
        """The size of its layers as they are on disk."""
        (image,) = json.loads(self.buildah("images", "--json", "drawdown"))
        return round(float(str(image["size"]).split()[0]) * (1000 if "GB" in image["size"] else 1))

    def write(self, path: str, text: str) -> None:
        """Write a file of the project in the container, as root."""
        (self.root / "opt/drawdown" / path).write_text(text)

    def command(self, arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """A command line that runs a program in the container as the image's user, as compose would.

        The image's entry point goes first; capabilities are dropped. A name of its own would not be in
        /etc/hosts without an engine.
        """
        variables = [part for name, value in environment.items() for part in ("--env", f"{name}={value}")]
        return [
            *(*self._buildah(), "run", "--isolation=chroot", "--hostname=localhost", "--cap-drop=all"),
            *(*variables, self._container, "--", *self._entry_point, *arguments),
        ]

    def processes(self) -> dict[int, str]:
        """Process id -> user id of what runs in the container."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            # A process that ends meanwhile is none.
            with suppress(OSError):
                if (process / "root").samefile(self.root):
                    status = (process / "status").read_text()
                    found[int(process.name)] = status.partition("\nUid:")[2].split()[0]
        return found

    def _buildah(self) -> list[str]:
        # In folders of their own: nothing of other images on this machine is seen or touched.
        store = f"--root={self.folder / 'images'}", f"--runroot={self.folder / 'run'}"
        return ["env", f"TMPDIR={self.folder}", "buildah", *store, "--storage-driver=overlay"]

    def _base(self) -> str:
        """Make a base image out of this machine's own package sources."""
        archive = self.folder / "base.tar"
        sources = [str(path) for path in _SOURCES if path.exists()][:1]
        self._step(
            *("mmdebstrap", "--variant=minbase", "--mode=root", f"--include={_INCLUDED}", RELEASE),
            *(str(archive), *sources),
        )
        empty = self.buildah("from", "scratch").strip()
        self.buildah("add", empty, archive, "/")
        archive.unlink()
        self.buildah("commit", "--rm", empty, "base")
        return "localhost/base"

    def _build(self, base: str) -> None:
        secrets = {"indexes": self._indexes(), "certificates": _CERTIFICATES}
        if _JAVA_CERTIFICATES.exists():
            secrets["java-certificates"] = _JAVA_CERTIFICATES
        given = [f"--secret=id={name},src={file}" for name, file in secrets.items() if file.exists()]
        self._step(
            *(*self._buildah(), "bud", "--isolation=chroot", "--layers=false", f"--build-arg=BASE={base}"),
            *(*given, "--tag=drawdown", str(ROOT)),
        )

    def _indexes(self) -> Path:
        """Write where this machine gets packages from, as the build sees it."""
        settings = {name: value for name, value in os.environ.items() if name.startswith(_SETTINGS)}
        if _CERTIFICATES.exists():
            trusted = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
            settings |= dict.fromkeys(trusted, "/run/secrets/certificates")
        if _JAVA_CERTIFICATES.exists():
            settings["JAVA_TOOL_OPTIONS"] = "-Djavax.net.ssl.trustStore=/run/secrets/java-certificates"
        file = self.folder / "indexes"
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
            stream.writelines(f"{name}='{value}'\n" for name, value in {**settings, **self._settings}.items())
        return file

    def _step(self, *command: str) -> None:
        with self._log.open("ab") as log:
            done = subprocess.run(command, stdout=log, stderr=log, check=False)
        assert done.returncode == 0, f"{command[0]}: {last_lines(self._log)}"


def _require_tools() -> None:
    if os.geteuid() != 0:
        pytest.skip("an image is built as root: without a container engine only root may make its files")
    for program in ("mmdebstrap", "buildah"):
        if shutil.which(program) is None and debian.can_install():
            debian.install(program)
        if shutil.which(program) is None:
            raise MachineError(
                f"tests.no-{program}",
                f"this test needs {program}, and it is not there",
                do=f"apt-get install {program}",
            )


def _mounts_below(folder: Path) -> list[str]:
    """Mount points; the kernel writes a space in a path as \\040, and pytest's paths have none."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [point for line in lines if (point := line.split()[1]).startswith(f"{folder}/")]
