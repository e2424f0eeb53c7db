"""The files of a pipeline's sources that are set aside: no batch, replay or rebuild reads them.

A run sets files aside that are beyond the limits of their source, a person those that Spark cannot read
(`drawdown quarantine file`). What is kept of a file has its size and time: a file that was replaced since is
another one. It belongs to the pipeline and not to a generation, so that a rebuild leaves out the same files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from drawdown.checkpoint import plain_path
from drawdown.layout import set_aside_of
from drawdown.storage import FileInfo, Storage
from drawdown.values.json_text import read_json

GONE = -1
"""The size of a file that no longer exists."""


@dataclass(frozen=True)
class SetAsideFile:
    """One file.

    Attributes:
        path: relative to the root of the source's storage.
        why: a sentence's end, of the limit or of the person.
        by: the user, or the id of the run.
        at: ISO, UTC.
    """

    path: str
    size: int
    mtime_ms: int
    why: str
    by: str
    at: str

    @property
    def is_gone(self) -> bool:
        """Whether it was gone when it was set aside: out of a batch that was planned with it."""
        return self.size == GONE

    def is_still(self, info: FileInfo) -> bool:
        """Whether a file at its path is the one that was set aside."""
        return (info.size, info.mtime_ms) == (self.size, self.mtime_ms)


def read_set_aside(storage: Storage, pipeline: str, source: str) -> dict[str, SetAsideFile]:
    """Return the files of a source that are set aside, by path. Raises SourceError."""
    try:
        found = read_json(storage.read_bytes(_file(pipeline, source)))
    except FileNotFoundError:
        return {}
    files = (SetAsideFile(**each) for each in found)
    return {each.path: each for each in files}


def set_aside(storage: Storage, pipeline: str, source: str, files: Iterable[SetAsideFile]) -> None:
    """Add files; call it under the pipeline's lease."""
    known = read_set_aside(storage, pipeline, source)
    more = {each.path: each for each in files if known.get(each.path) != each}
    if more:
        _write(storage, pipeline, source, {**known, **more})


def take_back(storage: Storage, pipeline: str, source: str, paths: Iterable[str]) -> None:
    """Forget files; call it under the pipeline's lease."""
    known = read_set_aside(storage, pipeline, source)
    _write(storage, pipeline, source, {path: known[path] for path in known if path not in set(paths)})


def left_out(
    kept: Mapping[str, SetAsideFile], storage: Storage, files: Iterable[FileInfo] | None = None
) -> set[str]:
    """Return the absolute paths of files that are set aside and were not replaced since.

    Args:
        storage: the source's.
        files: what is there now; None: look.
    """
    found = (storage.info(path) for path in kept) if files is None else files
    return {
        plain_path(info.path)
        for info in found
        if info is not None and (mark := kept.get(info.relative)) is not None and mark.is_still(info)
    }


def _write(storage: Storage, pipeline: str, source: str, files: Mapping[str, SetAsideFile]) -> None:
    content = json.dumps([asdict(files[path]) for path in sorted(files)], indent=1)
    storage.write_atomic(_file(pipeline, source), content.encode())


def _file(pipeline: str, source: str) -> str:
    return f"{set_aside_of(pipeline)}/{source}.json"
