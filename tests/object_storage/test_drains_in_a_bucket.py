"""Drains on a storage root in a bucket: no row is lost or comes twice, with state and without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pytest

from tests.support.bucket_sandbox import BucketSandbox, reached_by
from tests.support.command_line import answer, drawdown
from tests.support.sandbox import multiset
from tests.support.timed import EVENTS, HOURLY_FILES, land_and_run

NAME = "events"
STATELESS = """
sources:
  events: {format: json, path: landing/events, schema: events.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.sql
sink: {format: delta, path: tables/events, schema: events.ddl, publish: audited}
state: {partitions: 2}
"""
FILES = {"events_ddl": "id INT, v STRING", "transform_sql": "SELECT * FROM events"}
SESSIONS = {
    "event_ddl": "at TIMESTAMP, k STRING",
    "out_ddl": "k STRING, first TIMESTAMP, until TIMESTAMP, n BIGINT",
    "transform_sql": """
        SELECT k, session_window.start AS first, session_window.end AS until, count(*) AS n
        FROM events GROUP BY session_window(at, '5 minutes'), k
    """,
}
GAP = timedelta(minutes=5)
DELAY = timedelta(minutes=10)
# Each run's rows are newer than what the runs before have closed.
FIVE_RUNS = [
    ["10:00 a", "10:04 a", "10:20 b", "10:22 a"],
    ["10:24:30 a", "10:25 b", "10:50 b"],
    ["10:52 b", "10:45 a", "11:10 a"],
    ["11:12:30 a", "11:14 b", "11:40 b"],
    ["11:44 b", "12:30 a"],
]


@pytest.mark.capability("OBJ-01")
def test_three_runs_without_state_publish_each_row_once(lake: BucketSandbox) -> None:
    lake.pipeline(NAME, STATELESS, **FILES)
    read = []
    for wave in range(3):
        for file in range(2):
            rows = [{"id": wave * 10 + file * 5 + i, "v": "same"} for i in (0, 1, 1)]
            lake.land_json(f"landing/events/{wave}-{file}.json", rows)
        run = lake.run(NAME)
        read.append((run.counts.read, run.counts.published, run.batches, run.verdict))
        assert multiset(lake.delta("tables/events")) == _landed(lake)
    assert read == [(6, 6, 2, "pass")] * 3
    again = lake.drain(NAME)[0]
    assert (again.run, again.error) == (None, None), "nothing is new"


@pytest.mark.capability("OBJ-01")
@pytest.mark.full
def test_an_empty_landing_prefix_is_nothing_new(lake: BucketSandbox) -> None:
    lake.pipeline(NAME, STATELESS, **FILES)
    report = lake.drain(NAME)[0]
    assert (report.run, report.error) == (None, None)
    lake.land_json("landing/events/1.json", [{"id": 1, "v": "x"}])
    assert lake.run(NAME).counts.published == 1


@pytest.mark.capability("OBJ-01")
@pytest.mark.full
def test_files_of_odd_names_are_read_once_and_named_as_they_are(lake: BucketSandbox) -> None:
    lake.pipeline(NAME, STATELESS.replace(", options: {maxFilesPerTrigger: 1}", ""), **FILES)
    names = ["a b", "50%", "x%20y", "k=v", "a+b", "é", "'quoted'", "semi;colon", "#hash", "comma,"]
    for wave in range(2):
        for number, name in enumerate(names):
            rows = [f'{{"id": {number}, "v": "{wave}"}}', f"not json, of {wave}-{number}"]
            lake.land(f"landing/events/{wave}{name}.json", rows)
        counts = lake.run(NAME).counts
        assert (counts.read, counts.malformed, counts.published) == (20, 10, 10)
    assert lake.drain(NAME)[0].run is None
    assert multiset(lake.delta("tables/events")) == Counter((i, w) for i in range(10) for w in "01")
    files = {row["payload"].rsplit(" ")[-1]: unquote(row["file"]) for row in lake.quarantined(NAME)}
    expected = {
        f"{wave}-{number}": f"{lake.address.replace('s3://', 's3a://')}/landing/events/{wave}{name}.json"
        for wave in range(2)
        for number, name in enumerate(names)
    }
    assert files == expected


@pytest.mark.capability("OBJ-02")
@pytest.mark.parametrize("kept_by", ["rocksdb", pytest.param("hdfs", marks=pytest.mark.full)])
def test_sessions_over_five_runs_end_where_the_events_say(lake: BucketSandbox, kept_by: str) -> None:
    spec = EVENTS.replace("{partitions: 2}", f"{{partitions: 2, provider: {kept_by}}}")
    lake.pipeline("sessions", spec, **SESSIONS)
    for number, rows in enumerate(FIVE_RUNS):
        land_and_run(lake, "sessions", str(number), *rows)
        events = lake.json_rows("landing/events")
        assert multiset(lake.delta("tables/out")) == sessions(events)
    assert len(lake.delta("tables/out")) >= 6


@pytest.mark.capability("OBJ-02")
@pytest.mark.full
def test_windows_over_five_runs_count_each_event_once(lake: BucketSandbox) -> None:
    lake.pipeline("windows", EVENTS, **HOURLY_FILES)
    for number, rows in enumerate(FIVE_RUNS):
        land_and_run(lake, "windows", str(number), *rows)
        events = [_at(row) for row in lake.json_rows("landing/events")]
        until = max(events) - DELAY
        hours = Counter(at.replace(minute=0, second=0) for at in events)
        expected = [(hour, n) for hour, n in hours.items() if hour + timedelta(hours=1) <= until]
        assert multiset(lake.delta("tables/out")) == multiset(expected)


@pytest.mark.capability("OBJ-11")
def test_landing_and_tables_are_in_two_buckets(lake: BucketSandbox) -> None:
    partner = lake.server.bucket()
    address = f"s3://{partner}/from us"
    lake.keep_in(
        lake.address,
        reached_by("lake", lake.server, lake.address) + reached_by("partner", lake.server, address),
    )
    spec = STATELESS.replace("path: landing/events,", "storage: partner, path: 'da?ly/*',")
    lake.pipeline(NAME, spec, **FILES)
    client = lake.server.client(partner)
    landed: Counter[tuple[Any, ...]] = Counter()
    for wave in range(2):
        client.put(f"from us/daily/{wave}/a b.json", f'{{"id": {wave}, "v": "x"}}\n'.encode())
        client.put(f"elsewhere/daily/{wave}/c.json", b'{"id": 99, "v": "not ours"}\n')
        landed[(wave, "x")] += 1
        assert lake.run(NAME).counts.read == 1
        assert multiset(lake.delta("tables/events")) == landed
    assert lake.drain(NAME)[0].run is None
    assert all("/daily/" in key for key in client.keys("")), "nothing is written where others deliver"
    assert not lake.keys("landing")


@pytest.mark.capability("OBJ-11")
@pytest.mark.full
def test_cases_of_a_pipeline_leave_the_buckets_alone(lake: BucketSandbox) -> None:
    partner = lake.server.bucket()
    lake.keep_in(
        lake.address,
        reached_by("lake", lake.server, lake.address)
        + reached_by("partner", lake.server, f"s3://{partner}/from us"),
    )
    lake.server.client(partner).put("from us/daily/other.json", b'{"id": 99, "v": "not of the case"}\n')
    lake.pipeline(NAME, STATELESS.replace("path: landing/events,", "storage: partner, path: daily,"), **FILES)
    case = lake.root / "include/pipelines/events/tests/once"
    case.mkdir(parents=True)
    for name, text in {
        "case.yaml": "description: each row once\nwaves:\n  - {events: [one.json]}\n",
        "one.json": '{"id": 1, "v": "x"}\n',
        "wave1.expected.csv": "id,v\n1,x\n",
    }.items():
        (case / name).write_text(text)
    before = lake.everything(), lake.server.client(partner).keys("")
    done = drawdown(lake.root, "test", NAME, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [each["passed"] for each in answer(done.stdout)] == [True]
    assert (lake.everything(), lake.server.client(partner).keys("")) == before


def sessions(events: Iterable[Mapping[str, Any]]) -> Counter[tuple[Any, ...]]:
    """What one pass over all events makes of them: of each key, rows at most a gap apart are one session.

    Sessions that end behind the watermark are not there yet.
    """
    times: dict[str, list[datetime]] = {}
    for row in events:
        times.setdefault(row["k"], []).append(_at(row))
    until = max(at for each in times.values() for at in each) - DELAY
    found: Counter[tuple[Any, ...]] = Counter()
    for key, each in times.items():
        first = last = None
        count = 0
        for at in [*sorted(each), datetime.max.replace(tzinfo=until.tzinfo)]:
            if last is not None and at - last > GAP:
                if last + GAP <= until:
                    found[(key, first, last + GAP, count)] += 1
                first, count = None, 0
            first, last, count = first or at, at, count + 1
    return found


def _at(row: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(row["at"])


def _landed(lake: BucketSandbox) -> Counter[tuple[Any, ...]]:
    return Counter((row["id"], row["v"]) for row in lake.json_rows("landing/events"))
