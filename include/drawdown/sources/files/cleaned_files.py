"""What happens to a source's files after they are read (``cleanSource``), and where they must not go."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import TypeAdapter, ValidationError

from drawdown.values.globs import meets
from drawdown.values.model import problem
from drawdown.values.paths import SinkPath

_ARCHIVE: TypeAdapter[str] = TypeAdapter(SinkPath)


def cleans(options: Mapping[str, object]) -> bool:
    """Whether files leave the source's folder once a later batch has been planned."""
    return options.get("cleanSource", "off") != "off"


def check_archive(path: str, options: Mapping[str, object]) -> None:
    """Raise a PydanticCustomError for an archive that is not a folder, or that the source itself reads.

    The rule is Spark's (FileStreamSource.SourceFileArchiver), which refuses it only when the query starts.
    """
    archive = options.get("sourceArchiveDir")
    if (options.get("cleanSource") == "archive") != (archive is not None):
        raise problem(
            "contradiction",
            "cleanSource: archive and sourceArchiveDir go together",
            "options",
            do="give both or none",
        )
    if archive is None:
        return
    at = ("options", "sourceArchiveDir")
    try:
        folder = _ARCHIVE.validate_python(archive, strict=True)
    except ValidationError:
        raise problem(
            "wrong-path",
            "must be a folder below the storage root",
            *at,
            do="write a relative path without ..",
        ) from None
    if meets(path, folder):
        raise problem(
            "contradiction",
            f"the archive matches the source's path {path}: archived files could be read as new ones",
            *at,
            do="name a folder outside the source, for example"
            f" archive/{folder.rsplit('/', 1)[-1] if folder.split('/')[0] != 'archive' else 'read'}",
        )
