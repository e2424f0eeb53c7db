"""What a replay of an interval reads beyond it: as much as its rows are made from, and no less.

A table of transforms: with the lookback and lookahead that the plan asks for, the rows of an interval are
those of a computation over everything; with less of what it asks for, some are not.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from drawdown.drain.planning import plan_pipeline
from drawdown.errors import RefusedError
from drawdown.metastore.records import Run
from drawdown.query.bounded import bounded_output
from drawdown.query.query import Query
from drawdown.replay.spark_reach import Reach
from drawdown.spec import Pipeline
from drawdown.values.interval import Interval
from drawdown.workspace import Workspace
from tests.support.replays import replayed
from tests.support.sandbox import Sandbox, multiset

HOURLY = "GROUP BY window(at, '1 hour'), k"
SLIDING = "GROUP BY window(at, '2 hours', '30 minutes'), k"
SPEC = """
sources:
  a: {{format: json, path: landing/a, schema: event.ddl, watermark: {{column: at, delay: 0 seconds}}}}
{more}
transform: transform.sql
sink: {{format: delta, path: tables/out, schema: out.ddl, time_column: t}}
state: {{partitions: 1}}
replay: {{interval: 1 day{declared}}}
"""
SECOND = "  b: {format: json, path: landing/b, schema: event.ddl, watermark: {column: at, delay: 0 seconds}}"
EVENT = "at TIMESTAMP, k STRING, n BIGINT"
NOTHING = timedelta(0)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

WHOLE_DAY = ("2024-01-02", "2024-01-03")
SIX_HOURS = ("2024-01-02T06:00:00Z", "2024-01-02T12:00:00Z")
ODD = ("2024-01-02T06:20:00Z", "2024-01-02T09:50:00Z")


@dataclass(frozen=True)
class Case:
    """`needs`: for each interval lookback and lookahead; None where the plan cannot tell them."""

    sql: str
    needs: tuple[tuple[tuple[str, str], tuple[timedelta, timedelta] | None], ...]
    kind: str = "TIMESTAMP"

    @property
    def joins(self) -> bool:
        return " b" in self.sql


def case(sql: str, *needs: object, kind: str = "TIMESTAMP") -> Case:
    return Case(sql, tuple(zip(needs[::2], needs[1::2], strict=True)), kind)  # type: ignore[arg-type]


def hours(back: float, ahead: float) -> tuple[timedelta, timedelta]:
    return back * HOUR, ahead * HOUR


CLOSE = hours(0, 0)
CASES = {
    "identity": case("SELECT at AS t, k, n FROM a", WHOLE_DAY, CLOSE, ODD, CLOSE),
    "shifted": case("SELECT at + INTERVAL 2 HOURS AS t, k, n FROM a", ODD, hours(2, -2)),
    "hour": case(
        "SELECT date_trunc('HOUR', at) AS t, k, n FROM a", WHOLE_DAY, CLOSE, SIX_HOURS, CLOSE,
        ODD, (timedelta(minutes=-40), timedelta(minutes=10)),
    ),
    "week": case("SELECT date_trunc('week', at) AS t, k, n FROM a", WHOLE_DAY, CLOSE,
                 ("2024-01-01", "2024-01-02"), hours(0, 6 * 24), ("2024-01-01", "2024-01-08"), CLOSE),
    "month": case("SELECT date_trunc('MM', at) AS t, k, n FROM a", ("2024-01-01", "2024-01-02"),
                  (NOTHING, 31 * DAY - timedelta(microseconds=1))),
    "day": case("SELECT CAST(at AS DATE) AS t, k, n FROM a", WHOLE_DAY, CLOSE, kind="DATE"),
    "to_date": case("SELECT to_date(at) AS t, k, n FROM a", WHOLE_DAY, CLOSE, kind="DATE"),
    "day as a time": case("SELECT CAST(to_date(at) AS TIMESTAMP) AS t, k, n FROM a",
                          WHOLE_DAY, CLOSE, ("2024-01-02", "2024-01-02T06:00:00Z"), hours(0, 18)),
    "New York's day": case(
        "SELECT to_date(from_utc_timestamp(at, 'America/New_York')) AS t, k, n FROM a",
        WHOLE_DAY, None, kind="DATE",
    ),
    "another column": case("SELECT timestamp_seconds(n) AS t, k, n FROM a", WHOLE_DAY, None),
    "or another": case("SELECT coalesce(at, TIMESTAMP '2024-01-02 01:00:00') AS t, k, n FROM a",
                       WHOLE_DAY, None),
    "window": case(
        "SELECT window.start AS t, k, sum(n) AS n FROM a GROUP BY window(at, '1 hour'), k",
        WHOLE_DAY, CLOSE, ODD, (timedelta(minutes=-40), timedelta(minutes=10)),
    ),
    "window's end": case(
        "SELECT window.end AS t, k, sum(n) AS n FROM a GROUP BY window(at, '1 hour'), k",
        WHOLE_DAY, hours(1, -1),
    ),
    "window's last moment": case(
        "SELECT window_time(window) AS t, k, n FROM"
        " (SELECT window, k, sum(n) AS n FROM a GROUP BY window(at, '1 hour'), k)", WHOLE_DAY, CLOSE,
    ),
    "window that starts later": case(
        "SELECT window.start AS t, k, sum(n) AS n FROM a"
        " GROUP BY window(at, '1 hour', '1 hour', '20 minutes'), k",
        WHOLE_DAY, (timedelta(minutes=-20), timedelta(minutes=20)),
    ),
    "window that starts earlier": case(
        "SELECT window.start AS t, k, sum(n) AS n FROM a"
        " GROUP BY window(at, '1 hour', '1 hour', '-20 minutes'), k",
        WHOLE_DAY, (timedelta(minutes=-40), timedelta(minutes=40)),
    ),
    "sliding": case(
        "SELECT window.start AS t, k, sum(n) AS n FROM a " + SLIDING,
        WHOLE_DAY, hours(0, 1.5),
    ),
    "sliding, by its end": case(
        "SELECT window.end AS t, k, sum(n) AS n FROM a " + SLIDING,
        WHOLE_DAY, hours(2, -0.5),
    ),
    "day of a window": case(
        "SELECT to_date(window.start) AS t, k, sum(n) AS n FROM a " + SLIDING,
        WHOLE_DAY, hours(0, 1.5), kind="DATE",
    ),
    "window over windows": case(
        "SELECT window.start AS t, k, sum(n) AS n FROM"
        " (SELECT window_time(w) AS at, k, n FROM (SELECT window AS w, k, sum(n) AS n FROM a"
        f" {HOURLY})) GROUP BY window(at, '3 hours'), k",
        WHOLE_DAY, CLOSE,
        ("2024-01-02T01:00:00Z", "2024-01-02T04:00:00Z"), hours(-2, 2),
    ),
    "session": case(
        "SELECT session_window.start AS t, k, sum(n) AS n FROM a GROUP BY session_window(at, '1 hour'), k",
        WHOLE_DAY, None,
    ),
    "distinct": case("SELECT DISTINCT at AS t, k, n FROM a", WHOLE_DAY, CLOSE, ODD, CLOSE),
    "union": case("SELECT at AS t, k, n FROM a UNION ALL SELECT date_trunc('HOUR', at), k, n FROM b",
                  # As far as either branch may.
                  WHOLE_DAY, (NOTHING, HOUR - timedelta(microseconds=1))),
    "with": case("WITH c AS (SELECT date_trunc('HOUR', at) AS h, k, n FROM a) SELECT h AS t, k, n FROM c",
                 WHOLE_DAY, CLOSE),
    "join within an hour": case(
        "SELECT a.at AS t, a.k, b.n FROM a JOIN b ON a.k = b.k AND b.at >= a.at"
        " AND b.at <= a.at + INTERVAL 1 HOUR", WHOLE_DAY, hours(0, 1), ODD, hours(0, 1),
    ),
    "join within an hour, by the other": case(
        "SELECT b.at AS t, a.k, b.n FROM a JOIN b ON a.k = b.k AND b.at >= a.at"
        " AND b.at < a.at + INTERVAL 1 HOUR", WHOLE_DAY,
        (HOUR - timedelta(microseconds=1), NOTHING),
    ),
    "outer join": case(
        "SELECT a.at AS t, a.k, b.n FROM a LEFT JOIN b ON a.k = b.k AND b.at >= a.at - INTERVAL 30 MINUTES"
        " AND b.at <= a.at + INTERVAL 1 HOUR", WHOLE_DAY, hours(0.5, 1),
    ),
    "join of windows": case(
        "SELECT a.window.start AS t, a.k, a.n FROM (SELECT window(at, '1 hour') AS window, at, k, n FROM a) a"
        " JOIN (SELECT window(at, '1 hour') AS window, at, k, n FROM b) b"
        " ON a.window = b.window AND a.k = b.k",
        WHOLE_DAY, CLOSE,
    ),
    "join by time": case("SELECT a.at AS t, a.k, b.n FROM a JOIN b ON a.at = b.at AND a.k = b.k",
                         WHOLE_DAY, CLOSE),
}  # fmt: skip


def pipeline(sandbox: Sandbox, each: Case, declared: str = "") -> Pipeline:
    spec = SPEC.format(more=SECOND if each.joins else "", declared=declared)
    files = {"transform_sql": each.sql, "event_ddl": EVENT, "out_ddl": f"t {each.kind}, k STRING, n BIGINT"}
    return sandbox.pipeline("p", spec, **files)


def planned(sandbox: Sandbox, each: Case, declared: str = "") -> tuple[Pipeline, Query]:
    made = pipeline(sandbox, each, declared)
    assert sandbox.spark is not None
    with sandbox.metastore() as metastore:
        return made, plan_pipeline(sandbox.spark, Workspace(sandbox.project, metastore), made).accepted()


def events(seed: int) -> list[tuple[datetime, str, int]]:
    """Around the intervals; some on the edges of hours, some just before."""
    chance = random.Random(seed)
    first = datetime(2024, 1, 1, tzinfo=UTC)
    found = []
    for _ in range(150):
        at = first + timedelta(minutes=10 * chance.randrange(3 * 24 * 6))
        at += chance.choice([NOTHING, NOTHING, timedelta(minutes=3), timedelta(microseconds=-1)])
        found.append((at, chance.choice("xy"), chance.randrange(1, 5)))
    return found


def within(frame: DataFrame, column: str, interval: Interval) -> DataFrame:
    time = F.col(column).cast("timestamp")
    return frame.where((time >= F.lit(interval.start)) & (time < F.lit(interval.end)))


# What another case shows as well, by the same way.
AS_ANOTHER = {
    "to_date", "day as a time", "or another", "window that starts earlier", "window's last moment", "session",
    "sliding, by its end", "distinct", "with", "join within an hour, by the other", "join by time", "month",
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.full) if name in AS_ANOTHER else name for name in CASES],
)
def test_the_rows_of_an_interval_are_those_of_a_computation_over_everything(
    sandbox: Sandbox, name: str
) -> None:
    each = CASES[name]
    for source in "ab":
        sandbox.land_json(f"landing/{source}/none.json", [{"at": "2024-01-01T00:00:00Z", "k": "x", "n": 1}])
    made, query = planned(sandbox, each)
    frames = {
        source: query.session.createDataFrame(events(number), EVENT).coalesce(1)
        for number, source in enumerate(made.streaming_sources)
    }

    def rows(interval: Interval, read: Interval | None) -> Iterator[tuple[object, ...]]:
        fed = {n: f if read is None else within(f, "at", read) for n, f in frames.items()}
        with bounded_output(query.session, sandbox.project, made, fed) as output:
            return iter([tuple(row) for row in within(output, "t", interval).collect()])

    for bounds, needs in each.needs:
        interval = Interval.parse(*bounds)
        reach = Reach(query, made, interval)
        assert (reach.needs if reach.is_known else None) == needs, bounds
        if needs is None:
            with pytest.raises(RefusedError, match="does not show how far t can be") as refused:
                reach.refuse_far()
            assert refused.value.id == "replay.reach"
            continue
        everything = multiset(rows(interval, None))
        assert multiset(rows(interval, interval.wider(*needs))) == everything, bounds
        assert everything or each.sql.startswith(("SELECT date_trunc('week'", "SELECT date_trunc('MM'"))


# Replays that are run.


def row(at: str, n: int = 1, k: str = "x") -> dict[str, object]:
    return {"at": at, "k": k, "n": n}


def land(sandbox: Sandbox, file: str, *rows: dict[str, object], source: str = "a") -> None:
    sandbox.land_json(f"landing/{source}/{file}.json", rows, mtime=int(file))


def land_and_run(sandbox: Sandbox, file: str, *rows: dict[str, object], source: str = "a") -> Run:
    land(sandbox, file, *rows, source=source)
    return sandbox.run("p")


def out(sandbox: Sandbox) -> list[str]:
    """Rows such as `02T23:30 7`, of every day."""
    return [f"{t:%dT%H:%M} {n}" for t, _, n in sandbox.delta("tables/out")]


def refusal(sandbox: Sandbox, *bounds: str) -> RefusedError:
    with pytest.raises(RefusedError) as refused:
        replayed(sandbox, *bounds, name="p")
    return refused.value


def test_a_table_of_days_is_replayed_by_whole_days(sandbox: Sandbox) -> None:
    pipeline(sandbox, CASES["day"])
    land(sandbox, "1", *(row(f"2024-01-02T{hour}:30:00Z", n) for n, hour in enumerate(("03", "09", "21"))))
    land_and_run(sandbox, "2", row("2024-01-03T00:00:00Z", 9))
    before = out(sandbox)
    for bounds in (SIX_HOURS, ("2024-01-02", "2024-01-02T06:00:00Z")):
        error = refusal(sandbox, *bounds)
        assert error.id == "replay.reach"
        assert "is not whole days" in error.what
    assert out(sandbox) == before
    replayed(sandbox, *WHOLE_DAY, name="p")
    assert out(sandbox) == before


def test_what_the_plan_does_not_show_is_read_as_far_as_is_declared(sandbox: Sandbox) -> None:
    """A day in New York begins at five o'clock UTC; rows without event time are of a day of their own."""
    sql = (
        "SELECT to_date(coalesce(from_utc_timestamp(at, 'America/New_York'), TIMESTAMP '2024-01-02')) AS t,"
        " k, n FROM a"
    )
    undeclared = Case(sql, (), "DATE")
    pipeline(sandbox, undeclared)
    land(sandbox, "1", row("2024-01-02T12:00:00Z", 1), row("2024-01-03T04:00:00Z", 2), {"k": "x", "n": 3})
    land_and_run(sandbox, "2", row("2024-01-05T00:00:00Z", 4))
    before = out(sandbox)
    assert before == ["02T00:00 1", "02T00:00 2", "02T00:00 3", "04T00:00 4"]
    error = refusal(sandbox, *WHOLE_DAY)
    assert error.id == "replay.reach"
    assert "declare lookahead and lookback under `replay:`" in error.do
    pipeline(sandbox, undeclared, ", lookback: 0 seconds, lookahead: 5 hours")
    replayed(sandbox, *WHOLE_DAY, name="p")
    assert out(sandbox) == before


@pytest.mark.full
def test_a_sliding_window_is_replayed_once_its_last_one_is_closed(sandbox: Sandbox) -> None:
    """The table is that of a computation over everything, before the replay and behind it."""
    each = CASES["sliding"]
    pipeline(sandbox, each, ", lookback: 90 minutes")
    at = "2024-01-02T23:45:00Z", "2024-01-03T00:15:00Z", "2024-01-03T01:00:00Z"
    land_and_run(sandbox, "1", *(row(time, 10**n) for n, time in enumerate(at)))
    assert refusal(sandbox, *WHOLE_DAY).do.startswith("set under `replay:` at least lookahead: 90 minutes")
    pipeline(sandbox, each, ", lookback: 1 hour, lookahead: 90 minutes")
    assert refusal(sandbox, *WHOLE_DAY).id == "replay.open", "the window of 23:30 is open until 01:30"
    land_and_run(sandbox, "2", row("2024-01-03T01:30:00Z", 1000))
    before = out(sandbox)
    assert before == ["02T22:00 1", "02T22:30 11", "02T23:00 11", "02T23:30 111"]
    run = replayed(sandbox, *WHOLE_DAY, name="p")
    assert out(sandbox) == before
    assert run.counts.read == 3
    land_and_run(sandbox, "3", row("2024-01-04T00:00:00Z"))
    assert out(sandbox)[:4] == before, "the live query gives none of them again"


@pytest.mark.full
def test_a_window_is_known_by_its_end(sandbox: Sandbox) -> None:
    each = CASES["window's end"]
    pipeline(sandbox, each)
    land(sandbox, "1", row("2024-01-01T23:30:00Z"), row("2024-01-02T23:30:00Z"), row("2024-01-04T00:00:00Z"))
    sandbox.run("p")
    assert out(sandbox) == ["02T00:00 1", "03T00:00 1"]
    assert "at least lookback: 1 hour" in refusal(sandbox, *WHOLE_DAY).do
    pipeline(sandbox, each, ", lookback: 1 hour, lookahead: 2 hours")
    replayed(sandbox, *WHOLE_DAY, name="p")
    assert out(sandbox) == ["02T00:00 1", "03T00:00 1"]


def test_what_is_still_in_state_is_not_replayed(sandbox: Sandbox) -> None:
    """The last batch has moved the watermark to the end of the day, but was not run with it."""
    each = CASES["window"]
    made = pipeline(sandbox, each)
    spec = made.folder / "pipeline.yaml"
    text = spec.read_text().replace(
        "schema: event.ddl", "schema: event.ddl, options: {maxFilesPerTrigger: 1}"
    )
    spec.write_text(text + "drain: {max_batches: 1}\n")
    land(sandbox, "1", row("2024-01-02T06:30:00Z"), row("2024-01-03T00:00:00Z"))
    land_and_run(sandbox, "2", row("2024-01-02T23:30:00Z"), row("2024-01-03T00:00:00Z"))
    assert out(sandbox) == []
    error = refusal(sandbox, *WHOLE_DAY)
    assert error.id == "replay.open"
    assert out(sandbox) == []
    pipeline(sandbox, each)
    sandbox.run("p")
    before = ["02T06:00 1", "02T23:00 1"]
    assert out(sandbox) == before
    replayed(sandbox, *WHOLE_DAY, name="p")
    assert out(sandbox) == before, "with the watermark exactly at its end"


@pytest.mark.full
def test_a_row_without_a_match_is_given_a_millisecond_after_its_last_one(sandbox: Sandbox) -> None:
    """So says Spark's state of a join whose bound is a match, and so long its interval is open."""
    each = CASES["outer join"]
    pipeline(sandbox, each, ", lookback: 30 minutes, lookahead: 1 hour")
    last = "2024-01-02T23:59:59.999999Z"
    land(sandbox, "1", row(last), row("2024-01-03T01:00:00Z", 2))
    land_and_run(sandbox, "1", row("2024-01-03T01:00:00Z", 3, "y"), source="b")
    assert out(sandbox) == []
    assert refusal(sandbox, *WHOLE_DAY).id == "replay.open"
    land(sandbox, "2", row("2024-01-03T01:00:00.002Z"))
    land_and_run(sandbox, "2", row("2024-01-03T01:00:00.002Z", 3, "y"), source="b")
    assert out(sandbox) == ["02T23:59 None"]
    replayed(sandbox, *WHOLE_DAY, name="p")
    assert out(sandbox) == ["02T23:59 None"]
