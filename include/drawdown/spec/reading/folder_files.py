"""Reads the files beside pipeline.yaml; only files inside the folder itself."""

from __future__ import annotations

import os
from pathlib import Path

from drawdown.errors import SpecError
from drawdown.spec.reading.yaml_source import read_text


class FolderFiles:
    """Reads files of one pipeline folder. ``shown`` is how errors name the folder.

    A symlink may point within the folder; one that leads out of it, and a folder that is itself a link
    out of its parent, are refused.
    """

    def __init__(self, folder: Path, shown: str) -> None:
        self.folder = folder
        self.shown = shown
        self._folder = str(folder)
        self._is_link = folder.is_symlink()

    def has(self, name: str) -> bool:
        return os.path.lexists(f"{self._folder}/{name}")

    def read(self, name: str, named_at: str = "") -> str:
        """The text of a file. Raises SpecError at ``named_at`` (file:line of the key that names it)."""
        path = f"{self._folder}/{name}"
        shown = f"{self.shown}/{name}"
        if self._leads_out(name):
            raise SpecError(
                "spec.path-leaves-folder",
                f"{name} is a link that leads out of the pipeline's folder",
                where=named_at or shown,
                do="put the file itself into the folder",
            )
        if not os.path.isfile(path):  # noqa: PTH113  (six per pipeline, 1,000 pipelines: Path costs)
            raise SpecError(
                "spec.file-missing",
                f"{shown} does not exist or is not a file",
                where=named_at or self.shown,
                do=f"create {shown}",
            )
        return read_text(path, shown)

    def _leads_out(self, name: str) -> bool:
        if not (self._is_link or self._passes_a_link(name)):
            return False
        parent = os.path.realpath(self.folder.parent)
        inside = f"{parent}{os.sep}{self.folder.name}{os.sep}"
        return not os.path.realpath(self.folder / name).startswith(inside)

    def _passes_a_link(self, name: str) -> bool:
        # realpath would also check every parent folder, for each file of 1,000 pipelines.
        path = self._folder
        for part in name.split("/"):
            path = f"{path}/{part}"
            if os.path.islink(path):  # noqa: PTH114  (as above)
                return True
        return False
