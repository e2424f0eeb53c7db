"""A project in a bucket of a real S3 server, with objects that a test lands or pretends to have read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from drawdown.spark.object_storage import reach_buckets
from drawdown.storage import Storage
from tests.support.s3_servers import S3Server, Versitygw
from tests.support.sandbox import Sandbox

_PROJECT = """
storage_root: s3://{bucket}
storages:
  lake:
    address: s3://{bucket}
    endpoint: {endpoint}
    access_key: {access_key}
    secret_key: ${{{secret}}}
metastore: sqlite:///metastore.db
"""


class LandingBucket(Sandbox):
    """A `Sandbox` in a bucket of its own; Spark's session is told how to reach it."""

    def __init__(self, root: Path, spark: SparkSession, server: S3Server) -> None:
        super().__init__(root, spark)
        self.server, self.bucket = server, server.bucket()
        # A server's secret is its own: two of them may serve the tests of one process.
        secret = f"SECRET_{server.access_key}"
        os.environ[secret] = server.secret_key
        (root / "include" / "project.yaml").write_text(
            _PROJECT.format(
                bucket=self.bucket,
                endpoint=server.endpoint,
                access_key=server.access_key,
                secret=secret,
            )
        )
        reach_buckets(spark, self.project)

    @property
    def objects(self) -> Storage:
        """Return the bucket as Drawdown reaches it."""
        return Storage.of(self.project)

    def put(self, key: str, rows: Iterable[dict[str, Any]]) -> None:
        """Land an object now."""
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        self.server.client(self.bucket).put(key, text.encode())

    def place(self, keys: Sequence[str], mtimes: Sequence[float], content: bytes) -> None:
        """Write objects as files of versitygw, with times of the past.

        Neighbours of one time are one file under several names, which a disk makes and removes much faster.
        """
        assert isinstance(self.server, Versitygw)
        below = self.server.objects / self.bucket
        first, of_first = below, -1.0
        for key, mtime in zip(keys, mtimes, strict=True):
            target = below / key
            if mtime == of_first:
                target.hardlink_to(first)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            os.utime(target, (mtime, mtime))
            first, of_first = target, mtime

    def pretend_read(self, pipeline: str, keys: Sequence[str], mtimes: Sequence[float]) -> None:
        """Add files to the first entry of the log of seen files of a pipeline's only source.

        They come first: Spark reads in the order of the files' times.
        """
        log = f"_drawdown/{pipeline}/checkpoint-1/sources/0/0"
        lines = [
            json.dumps({"path": f"s3a://{self.bucket}/{key}", "timestamp": int(mtime * 1000), "batchId": 0})
            for key, mtime in zip(keys, mtimes, strict=True)
        ]
        version, *read = self.objects.read_bytes(log).decode().rstrip("\n").split("\n")
        self.objects.write_atomic(log, "\n".join([version, *lines, *read]).encode())
