"""Snapshot, restore, rewind, repair and move, when checkpoint and tables are in a bucket."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from drawdown.errors import DrawdownError
from tests.support.bucket_sandbox import PREFIX, BucketSandbox, reached_by
from tests.support.recovering import CHECKPOINT, FILES, NAME, SPEC, command_of
from tests.support.sandbox import multiset
from tests.support.typed import typed

HOURS = 2
_DELTA = SPEC.replace("FORMAT", "delta").replace("PUBLISH", "audited")


@pytest.fixture
def drained(lake: BucketSandbox, monkeypatch: pytest.MonkeyPatch) -> BucketSandbox:
    """A pipeline with state that has run twice."""
    monkeypatch.chdir(lake.root)
    lake.pipeline(NAME, _DELTA, **FILES)
    for wave in range(2):
        _arrive_and_run(lake, wave)
    return lake


@pytest.mark.capability("OBJ-08")
def test_a_snapshot_brings_checkpoint_and_table_back(drained: BucketSandbox) -> None:
    typed("checkpoint", "snapshot", NAME)
    before = multiset(drained.delta("tables/hourly"))
    _arrive_and_run(drained, 2)
    typed("checkpoint", "restore", NAME, "latest", "--sink", "--yes")
    assert multiset(drained.delta("tables/hourly")) == before
    assert drained.run(NAME).counts.read == HOURS * 5, "what came after the snapshot is read again"
    assert multiset(drained.delta("tables/hourly")) == _closed(2)


@pytest.mark.capability("OBJ-08")
@pytest.mark.full
def test_a_checkpoint_that_is_gone_comes_back_with_its_state(drained: BucketSandbox) -> None:
    typed("checkpoint", "snapshot", NAME)
    for key in drained.keys(CHECKPOINT):
        drained.client.delete(f"{PREFIX}/{key}")
    _arrive(drained, 2)
    _fixed_as_told(drained)
    drained.run(NAME)
    assert multiset(drained.delta("tables/hourly")) == _closed(2)


@pytest.mark.capability("OBJ-08")
@pytest.mark.full
def test_batches_are_taken_back_and_read_again(drained: BucketSandbox) -> None:
    with drained.metastore() as metastore:
        last = max(batch.batch_id for batch in metastore.batches(NAME, 1))
    typed("checkpoint", "rewind", NAME, "--to", str(last - 2), "--sink", "--yes")
    assert len(drained.delta("tables/hourly")) < sum(_closed(1).values())
    drained.run(NAME)
    assert multiset(drained.delta("tables/hourly")) == _closed(1)
    _arrive_and_run(drained, 2)
    assert multiset(drained.delta("tables/hourly")) == _closed(2)


@pytest.mark.capability("OBJ-08")
@pytest.mark.full
@pytest.mark.parametrize("log", ["commits", "offsets", "sources/0"])
def test_what_is_torn_is_repaired_by_the_command_that_the_error_names(
    drained: BucketSandbox, log: str
) -> None:
    typed("checkpoint", "snapshot", NAME)
    entries = [key for key in drained.keys(f"{CHECKPOINT}/{log}/") if key.rsplit("/", 1)[1].isdigit()]
    newest = max(entries, key=lambda key: int(key.rsplit("/", 1)[1]))
    whole = drained.client.get(f"{PREFIX}/{newest}")
    drained.client.put(f"{PREFIX}/{newest}", whole[: len(whole) // 2])
    _arrive(drained, 2)
    _fixed_as_told(drained)
    drained.run(NAME)
    assert multiset(drained.delta("tables/hourly")) == _closed(2)


@pytest.mark.capability("OBJ-08")
@pytest.mark.full
def test_a_root_that_was_copied_into_another_bucket_goes_on_there(drained: BucketSandbox) -> None:
    old, other = drained.address, drained.server.bucket()
    target = drained.server.client(other)
    for key in drained.client.keys(""):
        target.put(key.replace(PREFIX, "elsewhere", 1), drained.client.get(key))
        drained.client.delete(key)
    address = f"s3://{other}/elsewhere"
    drained.keep_in(address, reached_by("lake", drained.server, address))
    error = drained.drain(NAME)[0].error
    assert error is not None
    assert error.id == "storage.moved"
    assert old.replace("s3://", "s3a://") in error.do
    typed(*command_of(error.do))
    again = drained.drain(NAME)[0]
    assert (again.run, again.error) == (None, None), "nothing is new"
    for hour in _hours(2):
        target.put(f"elsewhere/landing/events/{hour}.csv", _csv(hour).encode())
    assert drained.run(NAME).counts.read == HOURS * 5
    assert multiset(drained.delta("tables/hourly")) == _closed(2)


def _fixed_as_told(lake: BucketSandbox) -> None:
    """A run is refused; the command that it names is typed, and `verify` finds nothing."""
    error = lake.drain(NAME)[0].error
    assert isinstance(error, DrawdownError), "a run goes on with a damaged checkpoint"
    words = command_of(error.do)
    typed(*words, *([] if "--yes" in words else ["--yes"] if words[1] in ("restore", "rewind") else []))
    found = json.loads(typed("checkpoint", "verify", NAME, "--json"))["data"]
    assert found.get("faults", []) == [], found


def _hours(wave: int) -> range:
    return range(wave * HOURS, (wave + 1) * HOURS)


def _csv(hour: int) -> str:
    return "".join(
        f"{line}\n" for line in ["id,at", *(f"{i},2024-01-01T{hour:02}:{i:02}:00Z" for i in range(5))]
    )


def _arrive(lake: BucketSandbox, wave: int) -> None:
    for hour in _hours(wave):
        lake.land(f"landing/events/{hour}.csv", _csv(hour))


def _arrive_and_run(lake: BucketSandbox, wave: int) -> None:
    _arrive(lake, wave)
    lake.run(NAME)


def _closed(wave: int) -> Counter[tuple[Any, ...]]:
    """The hours that have ended ten minutes before the last event, early in its own hour."""
    last = max(_hours(wave))
    return Counter((datetime(2024, 1, 1, hour, tzinfo=UTC), 5) for hour in range(last - 1))
