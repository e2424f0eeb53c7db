"""Files beside pipeline.yaml: read whole, from inside the folder only, symlinks followed."""

from __future__ import annotations

import os
from pathlib import Path

from drawdown.errors import SpecError
from drawdown.spec.yaml_source import read_text


class FolderFiles:
    """Reads files of one pipeline folder. ``shown`` is how errors name the folder."""

    def __init__(self, folder: Path, shown: str) -> None:
        self.folder = folder
        self._real = f"{os.path.realpath(folder.parent)}{os.sep}{folder.name}"
        self.shown = shown

    def has(self, name: str) -> bool:
        return os.path.lexists(self.folder / name)

    def read(self, name: str, named_at: str = "") -> str:
        """The text of a file. Raises SpecError at ``named_at`` (file:line of the key that names it)."""
        path = self.folder / name
        shown = f"{self.shown}/{name}"
        real = os.path.realpath(path)
        if not real.startswith(self._real + os.sep):
            raise SpecError(
                "spec.path-leaves-folder",
                f"{name} is a link out of the pipeline's folder",
                where=named_at or shown,
                do="put the file itself into the folder",
            )
        if not Path(real).is_file():
            raise SpecError(
                "spec.file-missing",
                f"{shown} is not there or not a file",
                where=named_at or self.shown,
                do=f"create {shown}",
            )
        return read_text(Path(real), shown)
