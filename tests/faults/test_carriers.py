"""Carriers, shape by shape: two watermarked sources that take turns over ten runs, one of which is killed.

After every run the table holds exactly what plain Python makes of all rows landed so far and of the
watermark as it is defined: the least (or greatest) of what each source has ever shown, less its delay. Plain
Spark would hold the watermark at 1970 and emit nothing. One run of each shape dies by SIGKILL and is done
again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.deaths import die
from tests.support.sandbox import Sandbox, multiset

RUNS = 10
HOUR = timedelta(hours=1)
DELAY = timedelta(minutes=90)
REACH = timedelta(minutes=33)
START = datetime(2024, 1, 1, 12, tzinfo=UTC)

SPEC = """
sources:
  a: {format: json, path: landing/a, schema: event.ddl, watermark: {column: at, delay: 90 minutes}}
  b: {format: json, path: landing/b, schema: event.ddl, watermark: {column: at, delay: 90 minutes}}
transform: TRANSFORM
watermark_policy: POLICY
sink: {format: delta, path: tables/out, schema: out.ddl}
state: {partitions: 2, rocksdb.trackTotalNumberOfRows: true}
"""
BOTH = "(SELECT * FROM a UNION ALL SELECT * FROM b)"
ON = "a.k = b.k AND b.at BETWEEN a.at AND a.at + INTERVAL 33 MINUTES"


@dataclass(frozen=True)
class Event:
    """One row of a source."""

    source: str
    id: str
    k: str
    at: datetime


def wave(i: int) -> list[Event]:
    """Run i brings an hour of one source: a key of its own, a row of two hours before, within the delay, and
    a second copy of a row of the other source."""
    source, hour = "ab"[i % 2], START + i * HOUR
    times = [("x", hour + timedelta(minutes=m)) for m in (5, 25, 45)]
    times += [(f"only {source}", hour + timedelta(minutes=35))]
    times += [("x", hour - timedelta(minutes=70)), ("x", hour - timedelta(minutes=35))]
    return [Event(source, f"{source}{i}.{n}", k, at) for n, (k, at) in enumerate(times)]


def watermark(events: Iterable[Event], policy: Callable[..., datetime]) -> datetime | None:
    """What two sources that have shown these rows agree on; None before they can."""
    newest: dict[str, datetime] = {}
    for event in events:
        newest[event.source] = max(event.at, newest.get(event.source, event.at))
    return policy(newest.values()) - DELAY if len(newest) == 2 or policy is max else None


# What each shape must have emitted once the watermark stands at `mark`.
Oracle = Callable[[Sequence[Event], datetime], Iterable[tuple[Any, ...]]]


def closed_hours(times: Iterable[datetime], mark: datetime) -> list[tuple[Any, ...]]:
    counted = Counter(at.replace(minute=0) for at in times)
    return [(hour, n) for hour, n in counted.items() if hour + HOUR <= mark]


def pairs(events: Sequence[Event]) -> list[tuple[Event, Event]]:
    left, right = ([e for e in events if e.source == source] for source in "ab")
    return [(a, b) for a in left for b in right if a.k == b.k and a.at <= b.at <= a.at + REACH]


def windows(events: Sequence[Event], mark: datetime) -> list[tuple[Any, ...]]:
    return closed_hours((e.at for e in events), mark)


def left_outer(events: Sequence[Event], mark: datetime) -> list[tuple[Any, ...]]:
    met = pairs(events)
    alone = [e for e in events if e.source == "a" and all(e != a for a, _ in met)]
    return [(a.id, b.id) for a, b in met] + [(e.id, None) for e in alone if e.at + REACH < mark]


def full_outer(events: Sequence[Event], mark: datetime) -> list[tuple[Any, ...]]:
    met = pairs(events)
    alone = [e for e in events if e.source == "b" and all(e != b for _, b in met)]
    return left_outer(events, mark) + [(None, e.id) for e in alone if e.at < mark]


def distinct(events: Sequence[Event], mark: datetime) -> list[tuple[Any, ...]]:
    return list({(e.at, e.k) for e in events})


def join_then_window(events: Sequence[Event], mark: datetime) -> list[tuple[Any, ...]]:
    # A join may still emit rows as old as the left side that it keeps.
    return closed_hours((a.at for a, _ in pairs(events)), mark - REACH)


@dataclass(frozen=True)
class Shape:
    """A transform in SQL or Python, its output's columns, and what it must emit."""

    code: str
    ddl: str
    oracle: Oracle


HOURS = "hour TIMESTAMP, n BIGINT"
IDS = "a STRING, b STRING"

SHAPES = {
    "union + window": Shape(
        f"SELECT window.start AS hour, count(*) AS n FROM {BOTH} GROUP BY window(at, '1 hour')",
        HOURS,
        windows,
    ),
    "filter + window": Shape(
        f"SELECT window.start AS hour, count(*) AS n FROM {BOTH} WHERE k = 'x' GROUP BY window(at, '1 hour')",
        HOURS,
        lambda events, mark: windows([e for e in events if e.k == "x"], mark),
    ),
    "left outer": Shape(f"SELECT a.id AS a, b.id AS b FROM a LEFT JOIN b ON {ON}", IDS, left_outer),
    "full outer": Shape(f"SELECT a.id AS a, b.id AS b FROM a FULL JOIN b ON {ON}", IDS, full_outer),
    "deduplication": Shape(
        "def transform(sources):\n"
        "    both = sources['a'].union(sources['b']).select('at', 'k')\n"
        "    return both.dropDuplicates(['at', 'k'])\n",
        "at TIMESTAMP, k STRING",
        distinct,
    ),
    "join, then window": Shape(
        "SELECT window.start AS hour, count(*) AS n"
        f" FROM (SELECT a.at AS at FROM a JOIN b ON {ON}) GROUP BY window(at, '1 hour')",
        HOURS,
        join_then_window,
    ),
    "window over window": Shape(
        "SELECT window.start AS hour, sum(n) AS n FROM (SELECT window_time(part) AS at, n FROM"
        f" (SELECT window(at, '20 minutes') AS part, count(*) AS n FROM {BOTH} GROUP BY part))"
        " GROUP BY window(at, '1 hour')",
        HOURS,
        windows,
    ),
}

NOTED = "after batch.note"
FLUSHED = "after batch.note 2"  # the second batch has no data: it only closes windows
STAGED = "after batch.stage"
COMMITTED = "before commits.note"


@pytest.mark.full
@pytest.mark.parametrize(
    ("shape", "policy", "killed_run", "moment"),
    [
        pytest.param("union + window", min, 4, FLUSHED, marks=pytest.mark.full),
        pytest.param("filter + window", max, 5, NOTED, marks=pytest.mark.full),
        pytest.param("left outer", min, 6, COMMITTED, marks=pytest.mark.full),
        pytest.param("full outer", max, 5, STAGED, marks=pytest.mark.full),
        ("deduplication", min, 5, NOTED),
        pytest.param("join, then window", min, 6, NOTED, marks=pytest.mark.full),
        pytest.param("window over window", max, 7, FLUSHED, marks=pytest.mark.full),
    ],
    ids=lambda value: getattr(value, "__name__", None) or (value if isinstance(value, str) else ""),
)
def test_rows_come_out_in_the_run_whose_data_closes_them(
    sandbox: Sandbox, shape: str, policy: Callable[..., datetime], killed_run: int, moment: str
) -> None:
    code, ddl = SHAPES[shape].code, SHAPES[shape].ddl
    language = "py" if code.startswith("def") else "sql"
    sandbox.pipeline(
        "turns",
        SPEC.replace("POLICY", policy.__name__).replace("TRANSFORM", f"transform.{language}"),
        event_ddl="id STRING, k STRING, at TIMESTAMP",
        out_ddl=ddl,
        **{f"transform_{language}": code},
    )
    for source in "ab":
        (sandbox.storage / "landing" / source).mkdir(parents=True)
    landed: list[Event] = []
    rows_in_state: list[int] = []
    for i in range(RUNS):
        landed += wave(i)
        rows = [{"id": e.id, "k": e.k, "at": e.at.isoformat()} for e in wave(i)]
        sandbox.land_json(f"landing/{landed[-1].source}/{i}.json", rows)
        if i == killed_run:
            die(sandbox, "turns", moment)

        run = sandbox.run("turns")

        mark = watermark(landed, policy)
        assert run.watermark == mark
        assert multiset(sandbox.delta("tables/out")) == multiset(
            SHAPES[shape].oracle(landed, mark or START - RUNS * HOUR)
        )
        rows_in_state.append(sum(operator["rows"] for operator in run.progress[-1]["operators"]))
    # Each second run brings the same again, two hours later.
    assert rows_in_state[RUNS - 1] == rows_in_state[RUNS - 3] > 0
    assert rows_in_state[RUNS - 2] == rows_in_state[RUNS - 4] > 0
    assert len(sandbox.delta("tables/out")) > RUNS // 2
    assert _fed_and_late(sandbox) == (len(landed), 0)


def _fed_and_late(sandbox: Sandbox) -> tuple[int, int]:
    """Of all batches, those of the dead run too."""
    with sandbox.metastore() as metastore:
        batches = metastore.batches("turns", 1)
    return sum(b.counts.fed for b in batches), sum(b.counts.late for b in batches)
