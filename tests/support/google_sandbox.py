"""A sandbox whose storage root is a bucket of Google Cloud Storage's test server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.bucket_sandbox import PREFIX, BucketSandbox
from tests.support.gcs_server import GcsClient, GcsServer

_NO_KEY = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}


class GoogleSandbox(BucketSandbox):
    """A project in ``gs://BUCKET/team/lake``."""

    scheme = "gs"

    def __init__(self, root: Path, spark: SparkSession | None, server: GcsServer, more: str = "") -> None:
        self.gcs, self.key_file = server, ""
        super().__init__(root, spark, cast("Any", server), more)

    def reached(self) -> str:
        key = f", google_key_file: '{self.key_file}'" if self.key_file else ""
        return f"  lake: {{address: '{self.address}', endpoint: '{self.gcs.endpoint}'{key}}}\n"

    def use_key(self, account: str) -> None:
        """From now on reach the bucket with a key of this service account."""
        self.key_file = str(self.gcs.key_file(self.root, account))
        self.keep_in(self.address, self.reached())

    @property
    def client(self) -> GcsClient:  # type: ignore[override]
        return self.gcs.client(self.bucket)

    def table(self, path: str) -> DeltaTable:
        key = json.dumps({**_NO_KEY, "gcs_base_url": self.gcs.endpoint})
        options = {"google_service_account_key": key, "allow_http": "true"}
        return DeltaTable(f"{self.address}/{path}", storage_options=options)

    def snapshot(self) -> dict[str, tuple[Any, ...]]:
        tags = self.gcs.tags(self.bucket, f"{PREFIX}/")
        return {key.removeprefix(f"{PREFIX}/"): tag for key, tag in tags.items()}

    def everything(self) -> set[str]:
        return {f"{key} {tag}" for key, (tag, _) in self.gcs.tags(self.bucket).items()}
