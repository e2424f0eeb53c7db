"""Notifications of a bucket: JSON documents in the form of S3, as MinIO and versitygw send them, too.

Source: "Event message structure" of Amazon S3's user guide. Keys are escaped as in a form, with ``+`` for a
space. Some servers leave them as they are, so a key that would change counts in both spellings: which of them
exists is asked anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_plus

from drawdown.values.json_text import read_json


def created_keys(record: bytes | None, bucket: str) -> Iterator[str]:
    """Yield the keys of objects that a record reports as created; nothing for any other record."""
    try:
        document = read_json(record or b"")
    except ValueError:
        return
    events = document.get("Records") if isinstance(document, dict) else None
    for event in events if isinstance(events, list) else ():
        if (key := _created(event, bucket)) is not None:
            yield from dict.fromkeys((unquote_plus(key), key))


def _created(event: Any, bucket: str) -> str | None:
    try:
        name = str(event["eventName"]).removeprefix("s3:")
        about = event["s3"]
        key = about["object"]["key"]
        found = name.startswith("ObjectCreated:") and about["bucket"]["name"] == bucket
    except (KeyError, TypeError):
        return None
    return key if found and isinstance(key, str) else None
