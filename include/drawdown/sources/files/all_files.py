"""List the files that Spark's file source would list, by Spark's own rules, without Spark.

Source (Spark 4.2): FileStreamSource.fetchAllFiles, PartitioningAwareFileIndex.allFiles,
HadoopFSUtils.shouldFilterOutPathName, MetadataLogFileIndex. In short:
- a path is a folder or a pattern; each match of the pattern is a folder to list, or a file;
- of a folder, its own files; those in folders below only when there are partition folders
  (``day=1``) among them, or with recursiveFileLookup;
- names that begin with ``.`` or ``_`` are skipped, files and folders, and so are names that end in
  ``._COPYING_``; ``_day=1``, ``_metadata`` and ``_common_metadata`` are not;
- without a pathGlobFilter of the source, names of files that are still being written
  (values/temporary_names.py) are skipped, as the reader tells Spark to do;
- a folder with a ``_spark_metadata`` log is the output of a file sink: the log is the listing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from drawdown.checkpoint import SINK_FIELDS, FileLog, plain_path
from drawdown.storage import FileInfo, Glob, Storage
from drawdown.values.temporary_names import ENDINGS

_SINK_LOG = "_spark_metadata"


def list_source_files(
    storage: Storage, path: str, options: Mapping[str, Any], after: str = ""
) -> list[FileInfo]:
    """Return the files below `path` as Spark would list them now, from one listing of the storage.

    Args:
        path: folder or pattern, relative to the storage root.
        options: the source's options, with names in lower case.
        after: leave out files whose path, below the root, is not greater by name, where the storage can.

    Raises:
        FileNotFoundError: a path without wildcards that does not exist; Spark refuses it too.
        RefusedError, SourceError: see storage and checkpoint.
    """
    globs = Glob.parse(path)
    if _is_plain(globs):
        if not storage.exists(path):
            raise FileNotFoundError(path)
        if storage.exists(f"{path}/{_SINK_LOG}"):
            return _written_by_sink(storage, path)
    walks = ((glob, storage.walk(glob.prefix, after=after)) for glob in globs)
    return [info for glob, found in walks for info in choose(found, glob, options)]


def choose(found: Iterable[FileInfo], glob: Glob, options: Mapping[str, Any]) -> list[FileInfo]:
    """Return those of the files at a path, of a listing or otherwise known, that Spark would read.

    Args:
        options: the source's options, with names in lower case.
    """
    recursive = str(options.get("recursivefilelookup", False)).lower() == "true"
    files = _below(found, glob, recursive)
    if "pathglobfilter" not in options:
        return [info for info in files if not info.name.endswith(ENDINGS)]
    wanted = Glob.parse(str(options["pathglobfilter"]))
    return [info for info in files if any(glob.matches_name(info.name) for glob in wanted)]


def _is_plain(globs: list[Glob]) -> bool:
    return len(globs) == 1 and not globs[0].names


def _below(found: Iterable[FileInfo], glob: Glob, recursive: bool) -> list[FileInfo]:
    visible = list(_visible(found, glob))
    partitioned = any("=" in folder for _, below in visible for folder in below[:-1])
    return [info for info, below in visible if recursive or partitioned or len(below) <= 1]


def _visible(found: Iterable[FileInfo], glob: Glob) -> Iterator[tuple[FileInfo, tuple[str, ...]]]:
    """Yield files that are not hidden, each with its path below the match of the pattern."""
    for info in found:
        names = tuple(info.relative[len(glob.prefix) :].strip("/").split("/"))
        below = names[len(glob.names) :]
        if glob.starts(names) and not any(_is_hidden(name) for name in below or names[-1:]):
            yield info, below


def _is_hidden(name: str) -> bool:
    if name.startswith(("_metadata", "_common_metadata")):
        return False
    return (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_")


def _written_by_sink(storage: Storage, path: str) -> list[FileInfo]:
    files: dict[str, FileInfo] = {}
    folder = plain_path(storage.path(path))
    for record in FileLog(storage, f"{path}/{_SINK_LOG}", SINK_FIELDS).everything():
        name = plain_path(unquote(record["path"]))
        if record["action"] == "delete":
            files.pop(name, None)
        else:
            relative = f"{path}{name.removeprefix(folder)}" if name.startswith(f"{folder}/") else name
            files[name] = FileInfo(name, relative, record["size"], record["modificationTime"])
    return list(files.values())
