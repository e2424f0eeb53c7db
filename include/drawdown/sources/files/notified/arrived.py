"""Which files of a source notifications report, or why they cannot say it and all files are listed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from drawdown.errors import RefusedError
from drawdown.sources.committed_offsets import SourceProgress
from drawdown.sources.files.notified.events import created_keys
from drawdown.sources.files.notified.kept import KeptArrivals, read_kept
from drawdown.sources.files.notified.topic import NotificationTopic, NoTopicError, SilentError, TopicEnd
from drawdown.sources.read_log import ReadLog
from drawdown.spec.connections.notifications import Notifications
from drawdown.storage import FileInfo, Storage
from drawdown.values.globs import is_expanded
from drawdown.values.text import counted

_MANY = 1_000
"""Files to ask for one by one; a listing finds so many with one request."""


@dataclass(frozen=True)
class Notified:
    """What notifications say of a source.

    Attributes:
        names: files that may be new, relative to the root of the source's storage; None: list all.
        why: why all are listed; empty when they are not.
        kept: what the run keeps: before it reads the files of `names`, or behind a listing when all that was
            found is read. None when the topic could not be read: what was kept before stays.
        forgotten: what is kept before a listing reads anything; None: what was kept before stays.
    """

    names: tuple[str, ...] | None
    why: str
    kept: KeptArrivals | None
    forgotten: KeptArrivals | None = None


def notified(at: SourceProgress) -> Notified | None:
    """Return what has arrived by the notifications of a source; None for a source without any.

    A topic that cannot be read is no error: all files are listed then.
    """
    storage = Storage.of_source(at.workspace.project, at.source)
    arrivals = at.source.arrivals
    if arrivals is None or not storage.is_s3:
        return None
    from confluent_kafka import KafkaException

    kept = None
    if at.past.checkpoint is not None:
        kept = read_kept(at.workspace.storage, at.pipeline.name, at.past.checkpoint.generation, at.name)
    broker = at.workspace.project.brokers[arrivals.broker]
    try:
        with NotificationTopic(broker, arrivals.topic) as topic:
            return _Look(at, storage, arrivals, kept).at(topic)
    except KafkaException as cause:
        why = f"the broker of topic {arrivals.topic} does not answer ({cause.args[0].str()})"
    except SilentError:
        why = f"the broker of topic {arrivals.topic} stopped in the middle of it"
    except NoTopicError:
        why = f"the broker has no topic {arrivals.topic}"
    return Notified(None, why, None, None if kept is None else _of_rewound(kept, _committed(at)))


def _committed(at: SourceProgress) -> int:
    return int((at.past.offset(at.name) or {}).get("logOffset", -1))


def _of_rewound(kept: KeptArrivals, committed: int) -> KeptArrivals | None:
    """What is kept behind a rewind until all is read; None when there was none.

    Smaller batches may bring the log back to where it was before all is read that it has forgotten.
    """
    return replace(kept, read_until=sys.maxsize) if kept.read_until > committed else None


@dataclass(frozen=True)
class ArrivedFiles:
    """What a run does about a source's notifications.

    Attributes:
        files: what Spark takes for the source's folder; None: it lists it.
        before: what is kept before the run reads anything; None: nothing.
        behind: what is kept when the run has read all that it listed; None: nothing.
        silent: why the topic could not be read; empty when it could.
    """

    files: tuple[FileInfo, ...] | None
    before: KeptArrivals | None = None
    behind: KeptArrivals | None = None
    silent: str = ""

    @classmethod
    def of(cls, told: Notified, new: Sequence[FileInfo], log: ReadLog) -> ArrivedFiles:
        """Return what follows from notifications, the files that are new, and those that were read."""
        if told.names is None or told.kept is None:
            return cls(None, told.forgotten, behind=told.kept, silent="" if told.kept else told.why)
        # By a file that was read, Spark still finds the source's partition folders when nothing is new.
        read = max(log.files, key=lambda file: file.timestamp_ms, default=None)
        known = () if read is None else (FileInfo(read.path, "", 0, read.timestamp_ms),)
        waiting = tuple(sorted(info.relative for info in new))
        return cls((*known, *new), before=replace(told.kept, waiting=waiting))


@dataclass(frozen=True)
class _Look:
    progress: SourceProgress
    storage: Storage
    arrivals: Notifications
    kept: KeptArrivals | None

    def at(self, topic: NotificationTopic) -> Notified:
        now_ms = int(time.time() * 1_000)
        # Before anything is listed: a file that the listing misses is reported behind these offsets.
        end = topic.now()
        about = {"topic": self.arrivals.topic, "id": end.id, "path": self.progress.source.path or ""}
        committed = _committed(self.progress)
        offsets = {str(number): offset for number, offset in end.end.items()}
        fresh = KeptArrivals(about, offsets, committed, (), now_ms)
        kept = self.kept
        if kept is None:
            return Notified(None, "its notifications are not known yet", fresh)
        if why := self._not_enough(kept, fresh, end):
            return Notified(None, why, fresh, _of_rewound(kept, committed))
        since = {int(number): offset for number, offset in kept.offsets.items()}
        names = set(kept.waiting)
        for record in topic.read(since, end.end):
            names |= set(self._below(record))
        if len(names) > _MANY:
            return Notified(None, f"{counted(len(names), 'file')} were reported", fresh)
        return Notified(tuple(sorted(names)), "", replace(fresh, listed_ms=kept.listed_ms))

    def _not_enough(self, kept: KeptArrivals, now: KeptArrivals, end: TopicEnd) -> str:
        """Return why notifications since then do not tell everything; empty when they do."""
        if kept.about != now.about:
            return "its notifications come from another topic than before"
        if end.lost({int(number): offset for number, offset in kept.offsets.items()}):
            return f"notifications of topic {self.arrivals.topic} are gone"
        if kept.read_until > now.read_until:
            return "the checkpoint was rewound"
        if now.listed_ms - kept.listed_ms >= self.arrivals.list_every.delta.total_seconds() * 1_000:
            return f"they were listed {self.arrivals.list_every.text} ago"
        return ""

    def _below(self, record: bytes | None) -> Iterable[str]:
        """Yield the files below the source's path that a record reports."""
        root = urlsplit(self.storage.root)
        prefix = f"{root.path.strip('/')}/".lstrip("/")
        folder = f"{self.progress.source.path}/"
        for key in created_keys(record, root.netloc):
            name = key.removeprefix(prefix)
            if not key.startswith(prefix) or not name.startswith(folder) or name.endswith("/"):
                continue
            if is_expanded(name):  # too much work for each record; a listing finds such a file
                continue
            with suppress(RefusedError):  # a name that no file of Spark's has
                self.storage.path(name)
                yield name


def existing(storage: Storage, names: Iterable[str]) -> list[FileInfo]:
    """Return those of these files that exist, one request each."""
    found = []
    for name in names:
        try:
            info = storage.info(name)
        except RefusedError:  # a name that no file of Spark's has
            continue
        if info is not None:
            found.append(info)
    return found
