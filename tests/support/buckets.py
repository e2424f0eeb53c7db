"""Storages in a bucket of a test's server, and the lines of project.yaml that reach it."""

from __future__ import annotations

from drawdown.spec.connections.object_storage import ObjectStorage
from drawdown.storage import Storage
from tests.support.s3_servers import S3Endpoint

PREFIX = "root"


def access(server: S3Endpoint, bucket: str) -> ObjectStorage:
    """Return how a bucket of this server is reached."""
    return ObjectStorage.model_validate(
        {
            "address": f"s3://{bucket}",
            "endpoint": server.endpoint,
            "access_key": server.access_key,
            "secret_key": server.secret_key,
        }
    )


def storage_of(server: S3Endpoint, bucket: str) -> Storage:
    """Return the storage below ``root/`` in a bucket."""
    return Storage(f"s3://{bucket}/{PREFIX}", access(server, bucket))
