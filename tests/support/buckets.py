"""Buckets of a test's server, as a project reaches them."""

from __future__ import annotations

from drawdown.spec import ObjectStorage
from tests.support.s3_servers import S3Endpoint


def access_to(server: S3Endpoint, bucket: str) -> ObjectStorage:
    """The entry of `storages:` for a bucket."""
    entry = {
        "address": f"s3://{bucket}",
        "endpoint": server.endpoint,
        "access_key": server.access_key,
        "secret_key": server.secret_key,
    }
    return ObjectStorage.model_validate(entry, strict=False)
