"""A sandbox whose storage root is a bucket: what tests write and read there goes by a client of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.rebuilds import Hourly
from tests.support.s3_client import S3Client
from tests.support.s3_servers import S3Endpoint
from tests.support.sandbox import Sandbox, sorted_rows

PREFIX = "team/lake"
_SETTINGS = ("spark.sql.streaming.checkpointFileManagerClass", "fs.s3a.input.stream.type")


class BucketSandbox(Sandbox):
    """A project in ``s3://BUCKET/team/lake``; `more` are further lines of project.yaml.

    ``storage`` is an empty folder of this machine: whatever takes the bucket for a disk shows there, or in
    the folder of the project.
    """

    scheme = "s3"

    def __init__(self, root: Path, spark: SparkSession | None, server: S3Endpoint, more: str = "") -> None:
        super().__init__(root, spark)
        self.server = server
        self.bucket = server.bucket()
        self.address = f"{self.scheme}://{self.bucket}/{PREFIX}"
        self.keep_in(self.address, self.reached() + more)

    def reached(self) -> str:
        """The entry of ``storages:`` by which the bucket is reached."""
        return reached_by("lake", self.server, self.address)

    def keep_in(self, address: str, storages: str) -> None:
        """Write project.yaml for another storage root; `storages` are the entries below ``storages:``."""
        self.address = address
        (self.root / "include/project.yaml").write_text(
            f"storage_root: {address}\nmetastore: sqlite:///metastore.db\nstorages:\n{storages}"
        )

    def reach_by(self, server: S3Endpoint) -> None:
        """From now on reach the bucket by this server: past a proxy in this very process.

        deltalake's `history` keeps Python's lock while it waits, so that proxy could not answer.
        """
        self.server = server
        self.keep_in(self.address, reached_by("lake", server, self.address))

    @property
    def client(self) -> S3Client:
        return self.server.client(self.bucket)

    def land(self, path: str, text: str | Iterable[str], mtime: float | None = None) -> Path:
        """Write an object below the storage root; the server sets its time. The path returned is its key."""
        key = f"{PREFIX}/{path}"
        whole = text if isinstance(text, str) else "".join(f"{line}\n" for line in text)
        self.client.put(key, whole.encode())
        return Path(key)

    def keys(self, under: str = "") -> list[str]:
        """Every object below a folder of the storage root, relative to the root."""
        return [key.removeprefix(f"{PREFIX}/") for key in self.client.keys(f"{PREFIX}/{under}")]

    def json_rows(self, under: str) -> list[dict[str, Any]]:
        """The rows of all json files that have landed in a folder."""
        found = [self.client.get(f"{PREFIX}/{key}").decode() for key in self.keys(under)]
        return [json.loads(line) for text in found for line in text.splitlines()]

    def table(self, path: str) -> DeltaTable:
        """A Delta table, opened with options that are spelled here."""
        options = {
            "aws_endpoint": self.server.endpoint,
            "aws_region": self.server.region,
            "aws_access_key_id": self.server.access_key,
            "aws_secret_access_key": self.server.secret_key,
            "allow_http": "true",
        }
        return DeltaTable(f"{self.address}/{path}", storage_options=options)

    def delta(self, path: str) -> list[tuple[Any, ...]]:
        return sorted_rows(duckdb.from_arrow(self.table(path).to_pyarrow_table()).fetchall())

    def quarantined(self, pipeline: str) -> list[dict[str, Any]]:
        rows = self.table(f"quarantine/{pipeline}").to_pyarrow_table().to_pylist()
        return sorted(rows, key=lambda row: str(row["payload"]))

    def everything(self) -> set[str]:
        """Every object with its content's tag."""
        tags = {key: self.client.send("HEAD", key).headers["ETag"] for key in self.client.keys("")}
        return {f"{key} {tag}" for key, tag in tags.items()}

    def read(self, path: str) -> bytes:
        return self.client.get(f"{PREFIX}/{path}")

    def snapshot(self) -> dict[str, tuple[Any, ...]]:
        """Every object with its content's tag; without what a run creates to try the storage."""
        heads = {key: self.client.send("HEAD", f"{PREFIX}/{key}").headers for key in self.keys()}
        return {key: (head["ETag"], head["Last-Modified"]) for key, head in heads.items()}

    def on_this_machine(self) -> set[str]:
        """What a run has left beside the specs: nothing but the metastore and what runs write locally."""
        ours = ("include", "metastore.db", "logs", ".drawdown")
        found = (path.relative_to(self.root) for path in self.root.rglob("*") if path.is_file())
        return {str(path) for path in found if not str(path).startswith(ours)}


class HourlyInBucket(BucketSandbox, Hourly):
    """The pipeline that rebuilds are tested on, in a bucket."""


def reached_by(name: str, server: S3Endpoint, address: str) -> str:
    """An entry of ``storages:``; the key is in the environment, as a spec may not hold it."""
    os.environ |= {f"{name.upper()}_KEY": server.access_key, f"{name.upper()}_SECRET": server.secret_key}
    return (
        f"  {name}: {{address: '{address}', endpoint: '{server.endpoint}',"
        f" access_key: '${{{name.upper()}_KEY}}', secret_key: '${{{name.upper()}_SECRET}}'}}\n"
    )


@contextmanager
def only_here(spark: SparkSession) -> Iterator[None]:
    """Within the block, drains may set up the session for buckets; behind it, it is for disks again."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
        for name in _SETTINGS:
            hadoop.unset(name)
