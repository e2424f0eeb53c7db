"""How a bucket of Google Cloud Storage is reached, as obstore, delta-rs and Hadoop are told."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from drawdown.checkpoint.file_log import seen_file
from drawdown.spec.connections.object_storage import ObjectStorage

pytestmark = pytest.mark.capability("OBJ-18")


def bucket(**more: str) -> ObjectStorage:
    return ObjectStorage.model_validate({"address": "gs://lake/in", **more}, strict=False)


def test_a_key_file_is_named_to_each_client_and_for_this_bucket_alone() -> None:
    reached = bucket(google_key_file="/keys/lake.json")
    assert reached.google_options == {"google_service_account": "/keys/lake.json"}
    assert reached.hadoop_options == {
        "fs.gs.bucket.lake.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
        "fs.gs.bucket.lake.auth.service.account.json.keyfile": "/keys/lake.json",
    }


def test_without_a_key_the_machines_own_is_left_to_each_client() -> None:
    assert (bucket().google_options, bucket().hadoop_options) == ({}, {})


def test_a_server_without_a_key_is_sent_none() -> None:
    reached = bucket(endpoint="http://127.0.0.1:9")
    options = dict(reached.google_options)
    assert json.loads(options.pop("google_service_account_key"))["disable_oauth"] is True
    assert options == {"google_base_url": "http://127.0.0.1:9", "allow_http": "true"}
    assert reached.hadoop_options["fs.gs.bucket.lake.endpoint"] == "http://127.0.0.1:9"
    assert reached.hadoop_options["fs.gs.bucket.lake.endpoint.without.key"] == "true"


@pytest.mark.parametrize(
    "wrong", [{"connection": "lake_key"}, {"access_key": "k", "secret_key": "s"}], ids=["connection", "S3"]
)
def test_keys_of_another_kind_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="no-effect"):
        bucket(**wrong)


@pytest.mark.parametrize(
    ("path", "time"),
    [
        ("gs://lake/a%20b", 1_700_000_000_000),
        ("s3a://lake/a", 1_700_000_000_000),
        ("/in/a", 1_700_000_000_987),
    ],
)
def test_the_time_of_an_object_in_sparks_log_is_whole_seconds(path: str, time: int) -> None:
    """A server may list milliseconds and leave them out when it is asked for one object."""
    assert seen_file({"path": path, "timestamp": 1_700_000_000_987, "batchId": 3}).timestamp_ms == time
