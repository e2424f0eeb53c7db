"""Checks the storage: whether this user may write there, and its clock."""

from __future__ import annotations

import getpass
import os
import shlex
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

from drawdown.cli.doctor.clock import clock
from drawdown.cli.doctor.commands import as_root
from drawdown.cli.doctor.finding import Check
from drawdown.errors import RefusedError, SourceError
from drawdown.layout import OWN
from drawdown.spec import Project
from drawdown.storage import Storage
from drawdown.storage.put_if_absent import refuse_unsafe
from drawdown.upkeep.left_uploads import left_uploads
from drawdown.values.text import counted

_NEEDED_BY = "file ages in `settle`, `policy.future_mtime` and upkeep are wrong by the same amount"


def storage(project: Project) -> Iterator[Check]:
    """Write a test file, check it, and delete it."""
    there = Storage.of(project)
    probe = f"{OWN}/doctor-{uuid.uuid4().hex}"
    try:
        asked = datetime.now(UTC)
        there.write_atomic(probe, b"")
        answered = datetime.now(UTC)
        written = there.info(probe)
        there.delete(probe)
    # Not found: a bucket that does not exist.
    except (SourceError, FileNotFoundError) as cause:
        why = cause.what if isinstance(cause, SourceError) else f"{there.root} does not exist"
        yield Check("storage", "fail", f"{there.root} cannot be written: {why}", _allow(there))
        return
    yield Check("storage", "ok", f"{there.root} can be written")
    try:
        refuse_unsafe(there)
    except RefusedError as unsafe:
        yield Check("storage", "fail", unsafe.what, unsafe.do)
    if written is not None:
        theirs = datetime.fromtimestamp(written.mtime_ms / 1_000, UTC)
        yield clock("storage", theirs, asked, answered, _NEEDED_BY)
    if there.is_s3:
        yield from _uploads(project)


def _uploads(project: Project) -> Iterator[Check]:
    """Look for parts of files that a killed run was uploading."""
    rule = "let the bucket end them: a lifecycle rule with AbortIncompleteMultipartUpload"
    try:
        left = left_uploads(project)
    except SourceError as cause:
        yield Check("storage", "warn", f"unfinished uploads cannot be listed: {cause.what}", rule)
        return
    if left is None:
        yield Check("storage", "ok", f"unfinished uploads are not looked for with a machine's role: {rule}")
    elif left:
        first = left[0]
        what = (
            f"{counted(len(left), 'upload')} of killed runs still hold their parts, such as {first.relative}"
        )
        yield Check("storage", "warn", f"{what} of {first.started_at:%Y-%m-%d}", "drawdown upkeep --all")


def _allow(storage: Storage) -> str:
    if not storage.is_local:
        return (
            f"create it, and give this user the right to list, read, write and delete below: {storage.root}"
        )
    folder = "/" + storage.root.removeprefix("file:").lstrip("/")
    quoted = shlex.quote(folder)
    if not os.path.exists(folder):  # noqa: PTH110  Path.exists raises where this user may not look
        return as_root(f"install -d -o {getpass.getuser()} -m 700 {quoted}")
    if os.stat(folder).st_uid == os.geteuid():  # noqa: PTH116
        return f"chmod -R u+rwX {quoted}"
    return as_root(f"chown -R {getpass.getuser()} {quoted}")
