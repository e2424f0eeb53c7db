"""The files that a source has now, as far as they may be new: from notifications, or from a listing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drawdown.sources.files.all_files import choose, list_source_files
from drawdown.sources.files.notified.arrived import Notified, existing
from drawdown.sources.files.rising import read_back
from drawdown.sources.read_log import ReadLog
from drawdown.spec import Source
from drawdown.storage import FileInfo, Glob, Storage


@dataclass(frozen=True)
class SourceListing:
    """One source's folder.

    Attributes:
        notified: what notifications say; None for a source without any.
    """

    storage: Storage
    source: Source
    notified: Notified | None = None

    def files(self, log: ReadLog) -> tuple[list[FileInfo], str]:
        """Return files that may be new, and the name behind which they were listed, see `listed_from`.

        Reads as much of the log as this needs.

        Raises:
            FileNotFoundError: a path without wildcards that does not exist.
            RefusedError, SourceError: the listing failed.
        """
        path = self.source.path or ""
        if self.notified is None or self.notified.names is None:
            after = read_back(self.storage, self.source, log)
            return list_source_files(self.storage, path, self.options, after), after
        log.read_more()
        read = {file.path for file in log.files}
        names = [name for name in self.notified.names if self.storage.path_of_file(name) not in read]
        [folder] = Glob.parse(path)
        return choose(existing(self.storage, names), folder, self.options), ""

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the source's options, with names in lower case."""
        return {name.lower(): value for name, value in self.source.options.items()}
