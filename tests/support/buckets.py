"""Storages in a bucket of a test's server, and the entry of project.yaml that reaches it."""

from __future__ import annotations

from drawdown.spec import ObjectStorage
from drawdown.storage import Storage
from tests.support.s3_servers import S3Endpoint

PREFIX = "root"


def access_to(server: S3Endpoint, bucket: str) -> ObjectStorage:
    """The entry of `storages:` for a bucket."""
    entry = {
        "address": f"s3://{bucket}",
        "endpoint": server.endpoint,
        "access_key": server.access_key,
        "secret_key": server.secret_key,
    }
    return ObjectStorage.model_validate(entry, strict=False)


def storage_of(server: S3Endpoint, bucket: str) -> Storage:
    """The storage below ``root/`` in a bucket."""
    return Storage(f"s3://{bucket}/{PREFIX}", access_to(server, bucket))
