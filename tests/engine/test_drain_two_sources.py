"""Carriers: two watermarked sources whose files arrive in different runs."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from tests.support.workspace import Workspace

SPEC = """
sources:
  a: {format: json, path: landing/a, schema: event.ddl, watermark: {column: at, delay: 10 minutes}}
  b: {format: json, path: landing/b, schema: event.ddl, watermark: {column: at, delay: 10 minutes}}
transform: transform.sql
sink: {format: delta, path: tables/hourly, schema: out.ddl, publish: audited}
state: {partitions: 2}
"""
FILES = {
    "event_ddl": "at TIMESTAMP, k STRING",
    "out_ddl": "hour TIMESTAMP, n BIGINT",
    "transform_sql": """
        SELECT window.start AS hour, count(*) AS n
        FROM (SELECT window(at, '1 hour') AS window FROM (SELECT * FROM a UNION ALL SELECT * FROM b))
        GROUP BY window
    """,
}
START = datetime(2024, 1, 1, tzinfo=UTC)
RUNS = 10


def test_windows_close_in_the_run_whose_data_closes_them(workspace: Workspace) -> None:
    """Run i brings one hour's events of one source only; plain Spark would never emit a row."""
    workspace.pipeline("hourly", SPEC, **FILES)
    (workspace.storage / "landing" / "a").mkdir(parents=True)
    (workspace.storage / "landing" / "b").mkdir(parents=True)
    expected: Counter[datetime] = Counter()
    shown = {"a": None, "b": None}
    for i in range(RUNS):
        source = "ab"[i % 2]
        times = [START + timedelta(hours=i, minutes=m) for m in (5, 25, 45)]
        expected.update(t.replace(minute=0) for t in times)
        shown[source] = max(times)
        workspace.land_json(f"landing/{source}/{i}.json", [{"at": t.isoformat(), "k": source} for t in times])

        run = workspace.run("hourly")

        assert (run.counts.read, run.counts.fed, run.counts.late) == (3, 3, 0)
        if all(shown.values()):
            watermark = min(shown.values()) - timedelta(minutes=10)
            closed = {hour: n for hour, n in expected.items() if hour + timedelta(hours=1) <= watermark}
            assert run.watermark == watermark
        else:
            closed = {}
        assert dict(workspace.delta("tables/hourly")) == closed
    assert sum(closed.values()) == (RUNS - 2) * 3


def test_carriers_are_seen_whatever_the_transform_filters(workspace: Workspace) -> None:
    """A join's keys imply `is not null`, which Spark would push below the watermark: carriers have no key."""
    workspace.pipeline(
        "joined",
        """
        sources:
          d: {format: json, path: landing/d, schema: d.ddl, watermark: {column: at, delay: 6 hours}}
          r: {format: json, path: landing/r, schema: r.ddl, watermark: {column: seen, delay: 3 hours}}
        transform: transform.sql
        sink: {format: delta, path: tables/joined, schema: out.ddl}
        state: {partitions: 2}
        """,
        d_ddl="at TIMESTAMP, k STRING",
        r_ddl="seen TIMESTAMP, k STRING, v INT",
        out_ddl="k STRING, v INT",
        transform_sql="""
            SELECT d.k, r.v FROM d LEFT JOIN r
            ON r.k = d.k AND r.seen <= d.at AND r.seen > d.at - INTERVAL 1 HOUR
        """,
    )
    for source in ("d", "r"):
        (workspace.storage / "landing" / source).mkdir(parents=True)
    workspace.land_json(
        "landing/d/1.json", [{"at": _time(10, 17), "k": "a"}, {"at": _time(10, 54), "k": "b"}]
    )
    workspace.run("joined")
    workspace.land_json(
        "landing/r/1.json",
        [{"seen": _time(10, 0), "k": "a", "v": 1}, {"seen": _time(20, 0), "k": "a", "v": 2}],
    )
    workspace.run("joined")
    assert workspace.delta("tables/joined") == [("a", 1)]
    workspace.land_json("landing/d/2.json", [{"at": _time(20, 44), "k": "c"}])
    run = workspace.run("joined")
    assert run.watermark == START + timedelta(hours=14, minutes=44)
    assert workspace.delta("tables/joined") == [("a", 1), ("b", None)]


def _time(hour: int, minute: int) -> str:
    return (START + timedelta(hours=hour, minutes=minute)).isoformat()
