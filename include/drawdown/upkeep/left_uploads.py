"""Parts of files that a killed run was uploading into a bucket, recognised only by their age.

They are looked for in the folders that Drawdown writes: what others are delivering is theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

from drawdown.errors import SourceError
from drawdown.layout import OWN, QUARANTINE
from drawdown.spec import Pipeline, Project, iter_pipelines
from drawdown.storage import Storage
from drawdown.storage.uploads import Upload, Uploads


def left_uploads(project: Project) -> list[Upload] | None:
    """Return uploads that were begun longer ago than `upkeep: {vacuum: }`; None when they cannot be listed.

    That is longer than a task may take. Raises SourceError when the storage cannot be reached.
    """
    uploads = Uploads.of(Storage.of(project))
    if uploads is None:
        return None
    # By this machine's clock: `drawdown doctor` compares it with that of the storage.
    until = datetime.now(UTC) - project.upkeep.vacuum.delta
    found = (each for folder in _written(project) for each in uploads.begun_before(until, folder))
    return sorted({(each.relative, each.id): each for each in found}.values(), key=lambda each: each.relative)


def remove_left_uploads(project: Project, *, dry: bool) -> list[str]:
    """Remove those uploads, or with `dry` only say so.

    Returns:
        One sentence per upload, or the one that says why it could not be done.
    """
    uploads, said = Uploads.of(Storage.of(project)), []
    if uploads is None:
        return []
    try:
        for each in left_uploads(project) or ():
            if not dry:
                # Ended by someone else in the meantime.
                with suppress(FileNotFoundError):
                    uploads.abort(each)
            said.append(
                f"removed the parts of {each.relative}, whose upload began {each.started_at:%Y-%m-%d}"
            )
    except SourceError as error:
        said.append(f"unfinished uploads stay: {error.what}: {error.do}")
    return said


def _written(project: Project) -> Iterator[str]:
    yield OWN
    yield QUARANTINE
    for each in iter_pipelines(project):
        if isinstance(each, Pipeline) and each.sink.path:
            yield each.sink.path
