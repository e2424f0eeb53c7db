"""Upkeep in a bucket: small files become few, old ones go, and parts of uploads that died with their run."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta

import pytest

from drawdown.cli.doctor.store import storage
from drawdown.storage import Storage
from drawdown.storage.uploads import Uploads
from drawdown.upkeep.left_uploads import left_uploads, remove_left_uploads
from tests.support.ageing import records_grow_old
from tests.support.bucket_sandbox import PREFIX, BucketSandbox
from tests.support.s3_servers import Moto
from tests.support.tidying import MONTH, tidied
from tests.support.typed import typed

EVENTS = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.sql
sink: {format: delta, path: tables/events, schema: event.ddl}
state: {partitions: 2}
"""
COPIES = """
sources:
  events: {format: delta, path: tables/events}
transform: transform.sql
sink: {format: delta, path: tables/copies, schema: event.ddl}
state: {partitions: 2}
"""


@pytest.fixture
def events(lake: BucketSandbox, monkeypatch: pytest.MonkeyPatch) -> BucketSandbox:
    """A pipeline that has not run, and one that streams its table."""
    monkeypatch.chdir(lake.root)
    every = {"event_ddl": "id INT", "transform_sql": "SELECT * FROM events"}
    lake.pipeline("events", EVENTS, **every)
    lake.pipeline("copies", COPIES, **every)
    return lake


@pytest.mark.capability("OBJ-09")
@pytest.mark.full
def test_small_files_become_one_and_old_ones_go(events: BucketSandbox) -> None:
    _arrive(events, *range(8))
    events.run("events")
    events.run("copies")
    small = _data_files(events)
    assert len(small) == 8
    assert tidied(events, "events", dry=True).compacted["output"].before == 8
    assert _data_files(events) == small
    done = tidied(events, "events")
    assert (done.compacted["output"].before, done.compacted["output"].after) == (8, 1)
    assert small < _data_files(events), "the small ones stay for who reads an older version"
    assert tidied(events, "events").vacuumed == {}, "they are young"
    _arrive(events, 8)
    events.run("events")
    assert events.run("copies").counts.read == 1, "not the rows of the compacted file"
    assert _ids(events, "events") == _ids(events, "copies") == list(range(9))

    # Times of objects are the server's: instead of a week, files stay for two seconds.
    with events.metastore() as metastore:
        records_grow_old(metastore, MONTH)
    project = events.root / "include/project.yaml"
    project.write_text(
        project.read_text()
        + "held: 1 second\nupkeep: {vacuum: 2 seconds}\nairflow: {execution_timeout: 1 second}\n"
    )
    time.sleep(3.1)
    gone = {info.relative for info in tidied(events, "events").vacuumed["output"]}
    assert gone == small
    assert _ids(events, "events") == list(range(9))
    _arrive(events, 9)
    events.run("events")
    assert events.run("copies").counts.read == 1
    assert _ids(events, "copies") == list(range(10))


@pytest.mark.capability("OBJ-09")
def test_parts_of_an_upload_that_died_are_found_by_doctor_and_removed_by_upkeep(
    events: BucketSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = events.client
    ours = [
        f"{PREFIX}/tables/events/part a+ü.parquet",
        f"{PREFIX}/_drawdown/events/checkpoint-1/state/0/1.zip",
    ]
    theirs = [f"{PREFIX}/landing/events/large.json", "another/team.parquet", f"{PREFIX}/tables/eventsx/1"]
    for key in ours + theirs:
        upload = client.start_upload(key)
        client.put_part(key, upload, 1, b"x" * 1000)
    # moto says of each upload that it was begun in 2010.
    if not isinstance(events.server, Moto):
        assert left_uploads(events.project) == [], "they may be of a run that goes on"
        assert all(check.level == "ok" for check in storage(events.project))

    later = datetime.now(UTC) + timedelta(days=8)
    monkeypatch.setattr("drawdown.upkeep.left_uploads.datetime", _At(later))
    found = {check.what: check.do for check in storage(events.project) if check.level == "warn"}
    [(what, do)] = [(what, do) for what, do in found.items() if "killed runs" in what]
    assert "2 uploads" in what
    assert do == "drawdown upkeep --all"
    said = json.loads(typed("upkeep", "--all", "--dry-run", "--json"))["data"]["machine"]
    assert len([each for each in said if "parts of" in each]) == 2
    assert sorted(client.uploads()) == sorted(ours + theirs), "nothing was changed"
    typed("upkeep", "--all")
    assert sorted(client.uploads()) == sorted(theirs), "what others are delivering is theirs"
    assert left_uploads(events.project) == []
    assert remove_left_uploads(events.project, dry=False) == []


@pytest.mark.capability("OBJ-09")
@pytest.mark.full
def test_more_uploads_than_one_answer_holds_are_all_found(lake: BucketSandbox) -> None:
    for number in range(1005):
        lake.client.start_upload(f"{PREFIX}/_drawdown/{number:04}")
    uploads = Uploads.of(Storage.of(lake.project))
    assert uploads is not None
    found = list(uploads.begun_before(datetime.now(UTC) + timedelta(days=1), "_drawdown"))
    assert len({each.relative for each in found}) == len(found) == 1005
    uploads.abort(found[0])
    with pytest.raises(FileNotFoundError):
        uploads.abort(found[0])


class _At:
    """A clock that shows one time."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self, zone: object) -> datetime:
        return self._now


def _arrive(lake: BucketSandbox, *numbers: int) -> None:
    for number in numbers:
        lake.land_json(f"landing/events/{number}.json", [{"id": number}])


def _ids(lake: BucketSandbox, table: str) -> list[int]:
    return sorted(row[0] for row in lake.delta(f"tables/{table}"))


def _data_files(lake: BucketSandbox) -> set[str]:
    return {key for key in lake.keys("tables/events/") if key.endswith(".parquet")}
