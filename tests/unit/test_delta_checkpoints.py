"""A Delta table's log gets checkpoints, so that opening it costs no request for each commit it ever had."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from drawdown.changes.protocol import Commit
from drawdown.delta.checkpoints import EVERY
from drawdown.delta.table import DeltaTableFiles
from drawdown.metastore.records import Change, StagedFile
from drawdown.storage import Storage
from tests.support.buckets import access_to
from tests.support.s3_proxy import ACCESS_DENIED, Rule, S3Proxy
from tests.support.s3_servers import Moto, S3Endpoint

SCHEMA = {"name": "n", "type": "long", "nullable": True, "metadata": {}}
APP = "drawdown/events/1"
LOG = "*/_delta_log/*.json"


def table(server: S3Endpoint, bucket: str) -> DeltaTableFiles:
    storage = Storage(f"s3://{bucket}", access_to(server, bucket))
    return DeltaTableFiles(storage.path("tables/out"))


@pytest.fixture
def bucket(s3: Moto) -> str:
    name = s3.bucket()
    table(s3, name).create(json.dumps({"type": "struct", "fields": [SCHEMA]}), [], "")
    return name


def publish(server: S3Endpoint, bucket: str, first: int, last: int) -> None:
    """Commit batches, each with one file that nothing reads."""
    for batch in range(first, last + 1):
        action = {"path": f"part-{batch}", "size": 1, "modificationTime": 1}
        change = Change(f"c{batch}", "events", "output", 1, "publish", "run", lease="events", epoch=1)
        file = StagedFile("output", f"part-{batch}", 1, 1, action)
        table(server, bucket).append([file], Commit(APP, batch, change))


def checkpoints(server: Moto, bucket: str) -> Iterator[int]:
    for key in server.client(bucket).keys("tables/out/_delta_log/"):
        if key.endswith(".checkpoint.parquet"):
            yield int(key.rpartition("/")[2].partition(".")[0])


def entries_read(server: Moto, bucket: str) -> int:
    server.mark()
    assert table(server, bucket).version > 0
    return server.requests(LOG)["GET"]


def test_opening_a_table_costs_the_same_after_4_commits_and_after_24(s3: Moto, bucket: str) -> None:
    publish(s3, bucket, 1, 4)
    early = entries_read(s3, bucket)
    publish(s3, bucket, 5, 24)
    assert entries_read(s3, bucket) <= early
    assert list(checkpoints(s3, bucket)) == [10, 20]


def test_a_checkpoint_keeps_every_file_and_the_last_batch(s3: Moto, bucket: str) -> None:
    publish(s3, bucket, 1, EVERY)
    found = table(s3, bucket)
    assert found.published_version(APP) == EVERY
    assert {path.rpartition("/")[2] for path in found.referenced()} == {
        f"part-{batch}" for batch in range(1, EVERY + 1)
    }


def test_a_commit_stands_whose_checkpoint_fails_and_the_next_one_makes_up_for_it(
    s3: Moto, bucket: str, caplog: pytest.LogCaptureFixture
) -> None:
    publish(s3, bucket, 1, EVERY - 1)
    with S3Proxy(s3) as proxy, caplog.at_level(logging.WARNING, "drawdown.delta"):
        proxy.add(Rule(ACCESS_DENIED, ["PUT", "POST"], "*.checkpoint.parquet"))
        publish(proxy, bucket, EVERY, EVERY)
    assert "no checkpoint of the log" in caplog.text
    assert not list(checkpoints(s3, bucket))
    publish(s3, bucket, EVERY + 1, EVERY + 1)
    assert list(checkpoints(s3, bucket)) == [EVERY + 1]
    assert table(s3, bucket).published_version(APP) == EVERY + 1
