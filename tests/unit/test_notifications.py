"""What a bucket's notifications say, and when they do not say enough."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from drawdown.errors import SpecError
from drawdown.sources.files.notified.arrived import _Look
from drawdown.sources.files.notified.events import created_keys
from drawdown.sources.files.notified.kept import KeptArrivals, keep, read_kept
from drawdown.sources.files.notified.topic import TopicEnd
from drawdown.storage import Storage
from tests.support.notifications import created
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  events: {{format: json, path: "{path}", schema: "id BIGINT", arrivals: {{topic: landed, broker: {broker}}}}}
transform: transform.sql
sink: {{format: delta, path: tables/out, schema: "id BIGINT"}}
"""


def keys(record: bytes | None) -> list[str]:
    return list(created_keys(record, "lake"))


def test_a_created_object_is_named_by_its_unescaped_key() -> None:
    assert keys(created("lake", "in/a.json")) == ["in/a.json"]
    assert keys(created("lake", "in/day=1/a b+é.json"))[0] == "in/day=1/a b+é.json"
    assert keys(created("lake", "in/a.json", event="s3:ObjectCreated:Put")) == ["in/a.json"], (
        "as MinIO says it"
    )


def test_a_key_that_a_server_did_not_escape_counts_too() -> None:
    event = json.loads(created("lake", "x"))
    event["Records"][0]["s3"]["object"]["key"] = "in/a+b.json"
    assert keys(json.dumps(event).encode()) == ["in/a b.json", "in/a+b.json"]


@pytest.mark.parametrize(
    "record",
    [
        None,
        b"",
        b"not json",
        b"\xff\xfe",
        b"7",
        b"[]",
        b'{"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "lake"}',
        b'{"Records": 7}',
        b'{"Records": [7, {}, {"eventName": "ObjectCreated:Put"}]}',
        b'{"Records": [{"eventName": "ObjectCreated:Put", "s3": 1}]}',
        created("other", "in/a.json"),
        created("lake", "in/a.json", event="ObjectRemoved:Delete"),
    ],
)
def test_any_other_record_reports_nothing(record: bytes | None) -> None:
    assert keys(record) == []


@pytest.mark.capability("SAFE-11")
@pytest.mark.parametrize(
    "key",
    [
        "in/../../etc/passwd",
        "in/a\\b.json",
        "in/" + 9 * "{a,b}",
        "in/{./,x/}./a",
        "in/a\x01.json",
        "in/",
        "in/" + 8 * "{/,,,,,,,,,,,,,,,,,,,,}",
    ],
)
def test_a_key_that_no_file_of_spark_has_reports_nothing(key: str) -> None:
    looked = Mock(storage=Storage("s3a://lake"), progress=Mock(source=Mock(path="in")))
    reported = _Look._below(looked, created("lake", key)), _Look._below(looked, created("lake", "in/b.json"))
    assert key not in list(reported[0])
    assert list(reported[1]) == ["in/b.json"]


@pytest.mark.parametrize(
    ("since", "lost"),
    [
        ({0: 5, 1: 9}, False),
        ({0: 3, 1: 7}, False),
        ({0: 2, 1: 7}, True),  # expired
        ({0: 5, 1: 10}, True),  # the topic is shorter than it was
        ({0: 5}, True),  # of a new partition the first records are gone
        ({0: 5, 1: 9, 2: 0}, True),  # a partition is gone
    ],
)
def test_notifications_are_lost_where_the_topic_does_not_reach_back(
    since: dict[int, int], lost: bool
) -> None:
    assert TopicEnd("id", {0: 3, 1: 7}, {0: 5, 1: 9}).lost(since) is lost


def test_a_new_partition_that_is_whole_loses_nothing() -> None:
    assert not TopicEnd("id", {0: 3, 1: 0}, {0: 5, 1: 9}).lost({0: 5})


KEPT = KeptArrivals({"topic": "t", "id": "i", "path": "in"}, {"0": 3}, 4, ("in/a", "in/b"), 5)


def test_what_was_kept_is_read_again(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    assert read_kept(storage, "p", 1, "events") is None
    keep(storage, "p", 1, {"events": KEPT})
    assert read_kept(storage, "p", 1, "events") == KEPT
    assert read_kept(storage, "p", 2, "events") is None


@pytest.mark.parametrize("damaged", [b"", b"{", b"7", b'{"about": {}}', b'{"about": 1, "offsets": 2}'])
def test_what_cannot_be_read_was_not_kept(tmp_path: Path, damaged: bytes) -> None:
    storage = Storage(str(tmp_path))
    keep(storage, "p", 1, {"events": KEPT})
    storage.write_atomic("_drawdown/p/arrivals-1/events.json", damaged)
    assert read_kept(storage, "p", 1, "events") is None


@pytest.mark.parametrize(
    ("path", "broker", "said"), [("in/*", "default", "one folder"), ("in", "nope", "nope")]
)
def test_a_pattern_and_an_unknown_broker_are_refused(
    sandbox: Sandbox, path: str, broker: str, said: str
) -> None:
    files: dict[str, Any] = {"transform_sql": "SELECT * FROM events"}
    with pytest.raises(SpecError, match=said):
        sandbox.pipeline("p", SPEC.format(path=path, broker=broker), **files)
    assert sandbox.pipeline("p", SPEC.format(path="in", broker="default"), **files).sources["events"].arrivals
