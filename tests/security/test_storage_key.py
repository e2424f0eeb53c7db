"""The key of a bucket, and where it turns up: nowhere.

A real drain through `drawdown run` into a bucket; then command lines, everything that was printed, files, the
metastore and the bucket itself are searched for the secret half of the key, and for a session's token.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.canaries import Place
from tests.support.s3_client import S3Client
from tests.support.s3_proxy import EXPIRED_TOKEN, Refuse, Rule, S3Proxy
from tests.support.s3_servers import Moto
from tests.support.spark import ROOT

SECRET, TOKEN = "canary/of-the+secret-key-91c", "canary-of-the-session/token+7f=="
PROJECT = """
storage_root: s3://BUCKET/root
storages:
  lake:
    address: s3://BUCKET
    endpoint: ENDPOINT
    access_key: ${LAKE_ID}
    secret_key: ${LAKE_SECRET}
    session_token: ${LAKE_TOKEN}
metastore: sqlite:///metastore.db
"""
PIPELINE = """
sources:
  events: {format: json, path: landing, schema: "id INT"}
transform: transform.sql
sink: {format: delta, path: tables/events, schema: out.ddl}
state: {partitions: 1}
"""
QUALITY = "rules: [{name: small, check: id < 90, on_fail: quarantine}]\n"

pytestmark = pytest.mark.capability("OBJ-16")


@dataclass
class Lake:
    place: Place
    proxy: S3Proxy
    client: S3Client


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, s3: Moto) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("key") / "project"
    pipeline = folder / "include" / "pipelines" / "events"
    pipeline.mkdir(parents=True)
    with S3Proxy(s3) as proxy:
        bucket = proxy.bucket()
        project = PROJECT.replace("BUCKET", bucket).replace("ENDPOINT", proxy.endpoint)
        (folder / "include" / "project.yaml").write_text(project)
        (pipeline / "pipeline.yaml").write_text(PIPELINE)
        (pipeline / "transform.sql").write_text("SELECT id FROM events")
        (pipeline / "out.ddl").write_text("id INT")
        (pipeline / "quality.yaml").write_text(QUALITY)
        environment = {
            **os.environ,
            "LAKE_ID": "AKOFTHELAKE",
            "LAKE_SECRET": SECRET,
            "LAKE_TOKEN": TOKEN,
            "PYTHONPATH": str(ROOT / "include"),
        }
        lake = Lake(Place(folder, environment, (SECRET, TOKEN)), proxy, s3.client(bucket))
        _land(lake)
        yield lake


def _land(lake: Lake) -> None:
    """One more file."""
    number = len(lake.client.keys("root/landing"))
    lake.client.put(f"root/landing/{number}.json", b'{"id": 1}\n{"id": 99}\nbroken\n')


@pytest.fixture(scope="module")
def drained(lake: Lake) -> str:
    code, printed = lake.place.command("run", "events")
    assert code == 0, printed
    assert any(b"org.apache.spark.deploy.SparkSubmit" in line for line in lake.place.lines_seen)
    return printed


def test_a_drain_prints_and_writes_no_key(lake: Lake, drained: str) -> None:
    assert "3 read" in drained
    assert not lake.place.found(drained)
    names = {path.name for path in lake.place.root.rglob("*") if path.is_file()}
    assert {"spark.log", "metastore.db"} <= names
    assert lake.place.files_with_one() == []
    written = lake.client.keys("root/")
    assert {"root/quarantine", "root/_drawdown"} <= {"/".join(key.split("/")[:2]) for key in written}
    assert [key for key in written if lake.place.found(lake.client.get(key))] == []


@pytest.mark.sampled
@pytest.mark.parametrize(
    "command", [("doctor",), ("plan", "events", "--json"), ("validate",), ("runs", "events", "--json")]
)
def test_no_command_shows_a_key(lake: Lake, drained: str, command: tuple[str, ...]) -> None:
    _, printed = lake.place.command(*command)
    assert printed
    assert not lake.place.found(printed)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("refused", "key"),
    [
        (EXPIRED_TOKEN, "*/tables/*.parquet"),
        (Refuse(403, "SignatureDoesNotMatch", "The signature does not match"), "*/offsets/*"),
        (Refuse(403, "InvalidAccessKeyId", "There is no such key"), "*"),
    ],
)
def test_no_error_shows_a_key(lake: Lake, drained: str, refused: Refuse, key: str) -> None:
    _land(lake)
    rule = lake.proxy.add(Rule(refused, key=key))
    try:
        code, printed = lake.place.command("run", "events")
    finally:
        lake.proxy.clear()
    assert rule.struck
    assert (code, "storage.denied" in printed) == (5, True), printed
    assert not lake.place.found(printed)
    assert "Traceback" not in printed
    assert lake.place.files_with_one() == []


@pytest.mark.full
def test_a_bucket_without_a_key_is_reached_by_that_of_the_environment(lake: Lake, drained: str) -> None:
    spec = lake.place.root / "include" / "project.yaml"
    before = spec.read_text()
    spec.write_text("\n".join(line for line in before.splitlines() if "{LAKE_" not in line))
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    values = ("AKOFTHELAKE", SECRET, TOKEN)
    lake.place.environment |= dict(zip(names, values, strict=True))
    _land(lake)
    try:
        code, printed = lake.place.command("run", "events")
    finally:
        spec.write_text(before)
        for name in names:
            del lake.place.environment[name]
    assert code == 0, printed
    assert not lake.place.found(printed)
    assert lake.place.files_with_one() == []
