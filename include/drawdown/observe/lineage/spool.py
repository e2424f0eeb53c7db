"""Events that wait for their delivery, a file each, in the order in which they happened.

Every event is written here before it is sent, so a server that is away, or a process that is killed, loses
none: the next run delivers it.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from drawdown.processes.private_folder import private_folder

_LOCK = ".sending"
_MOST = 1_000
"""The oldest are dropped beyond this: a server that is gone for good must not fill the disk."""


@dataclass(frozen=True)
class Spool:
    """A folder of events as JSON."""

    folder: Path

    def add(self, event: str, at: int) -> None:
        """Keep an event; `at`: nanoseconds since 1970, when it happened."""
        folder = private_folder(self.folder)
        name = f"{at:020d}-{uuid.uuid4().hex}"
        draft = folder / f".{name}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(event)
        draft.rename(folder / f"{name}.json")

    def waiting(self) -> list[Path]:
        """Return the files of the events that wait, oldest first."""
        return sorted(self.folder.glob("*.json"))

    def drop_oldest(self) -> int:
        """Remove events that are too many; return how many."""
        too_many = self.waiting()[:-_MOST]
        for each in too_many:
            each.unlink(missing_ok=True)
        return len(too_many)

    @contextmanager
    def sending(self) -> Iterator[bool]:
        """Take the right to send for the block; false when another process has it."""
        private_folder(self.folder)
        with (self.folder / _LOCK).open("w") as stream:
            taken = False
            with suppress(BlockingIOError):
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                taken = True
            yield taken
