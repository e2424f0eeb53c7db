"""Notifications of a bucket, as S3 writes them, for servers that send none."""

from __future__ import annotations

import json
from urllib.parse import quote_plus


def created(bucket: str, key: str, event: str = "ObjectCreated:Put") -> bytes:
    """A notification of an object that was created, without what nobody reads."""
    about = {"bucket": {"name": bucket}, "object": {"key": quote_plus(key, safe="/"), "size": 1}}
    return json.dumps({"Records": [{"eventSource": "aws:s3", "eventName": event, "s3": about}]}).encode()
