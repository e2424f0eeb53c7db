"""Multipart uploads that were begun and never ended: their parts are stored, billed, and in no listing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from xml.etree import ElementTree

from drawdown.storage.access import object_options
from drawdown.storage.s3_requests import S3Bucket
from drawdown.storage.storage import Storage


@dataclass(frozen=True)
class Upload:
    """An upload: `relative` to the storage root."""

    relative: str
    id: str
    started_at: datetime


@dataclass(frozen=True)
class Uploads:
    """The unfinished uploads below one storage root.

    Methods raise SourceError: ``storage.no-bucket``, ``storage.denied``, ``storage.unreachable``.
    """

    bucket: S3Bucket
    prefix: str

    @classmethod
    def of(cls, storage: Storage) -> Uploads | None:
        """Return those of a storage; None unless it is a bucket of S3 whose key this process knows."""
        bucket = S3Bucket.of(storage.root, object_options(storage.root))
        prefix = storage.root.partition("://")[2].partition("/")[2]
        return None if bucket is None else cls(bucket, f"{prefix}/" if prefix else "")

    def begun_before(self, until: datetime, folder: str) -> Iterator[Upload]:
        """Yield the uploads below a folder that were begun before a time."""
        query = {"uploads": "", "prefix": f"{self.prefix}{folder}/"}
        while True:
            page = ElementTree.fromstring(self.bucket.send("GET", "", query))  # noqa: S314  the storage's answer
            for each in page.iterfind("{*}Upload"):
                started = datetime.fromisoformat(_text(each, "Initiated"))
                if started < until:
                    relative = _text(each, "Key").removeprefix(self.prefix)
                    yield Upload(relative, _text(each, "UploadId"), started)
            behind = _text(page, "NextKeyMarker")
            if _text(page, "IsTruncated") != "true" or not behind:
                return
            # versitygw refuses the `upload-id-marker` that it gave. Without it, further uploads of the last
            # key are left out: the next upkeep finds them.
            query |= {"key-marker": behind}

    def abort(self, upload: Upload) -> None:
        """Remove the parts of an upload, which can then not be completed any more."""
        self.bucket.send("DELETE", f"{self.prefix}{upload.relative}", {"uploadId": upload.id})


def _text(element: ElementTree.Element, name: str) -> str:
    return element.findtext(f"{{*}}{name}") or ""
