"""Intervals that cannot be computed again yet, or not from what is there."""

from __future__ import annotations

import os
import shutil

from deltalake import DeltaTable

from drawdown.errors import DrawdownError
from tests.remedies.ground import FAILS, Ground
from tests.remedies.registry import Made, state
from tests.support.replays import REPLAYED
from tests.support.sandbox import Sandbox

HOURLY = "hourly"
DAY = f"backfill {HOURLY} --from 2024-01-01 --to 2024-01-02"
SUMS = "SELECT window.start AS hour, count(*) AS n FROM events GROUP BY window(at, '1 hour')"


def _pipeline(sandbox: Sandbox, spec: str = REPLAYED, **files: str) -> None:
    columns = {"events_ddl": "at TIMESTAMP", "hourly_ddl": "hour TIMESTAMP, n BIGINT"}
    sandbox.pipeline(HOURLY, spec, **{**columns, "transform_sql": SUMS, **files})


def _land(sandbox: Sandbox, file: int, *hours: str) -> None:
    """Events by day and hour, `01T06`."""
    rows = [{"at": f"2024-01-{hour}:30:00Z"} for hour in hours]
    sandbox.land_json(f"landing/events/{file}.json", rows, mtime=file)


def _two_days(ground: Ground) -> None:
    sandbox = ground.empty()
    _pipeline(sandbox)
    _land(sandbox, 1, "01T06", "01T18", "02T06")
    sandbox.run(HOURLY)
    _land(sandbox, 2, "02T07", "03T06")
    sandbox.run(HOURLY)


@state("replay.open", full=True)
def replay_open(ground: Ground) -> Made:
    sandbox = ground.base("two days", lambda: _two_days(ground))
    third = DAY.replace("01-02", "01-04").replace("01-01", "01-03")
    error = ground.fails("replay.open", third)
    _land(sandbox, 3, "04T06", "05T06")
    return Made(
        error,
        hands={"replay an earlier interval": lambda: [ground.well(DAY), sandbox.drain(HOURLY)]},
        again=third,
        names=(HOURLY,),
    )


@state("replay.nothing-visible")
def nothing_visible(ground: Ground) -> Made:
    sandbox = ground.empty()
    _pipeline(sandbox)
    _land(sandbox, 1, "01T06", "02T06", "03T06")
    return Made(ground.fails("replay.nothing-visible", DAY), names=(HOURLY,))


@state("replay.nothing-visible/held", full=True)
def nothing_visible_but_held(ground: Ground) -> Made:
    sandbox = ground.empty()
    _pipeline(sandbox, quality_yaml=FAILS)
    _land(sandbox, 1, "01T06", "02T06", "03T06")
    sandbox.drain(HOURLY)
    _land(sandbox, 2, "04T06", "05T06")
    sandbox.drain(HOURLY)
    _pipeline(sandbox, quality_yaml="rules: []\n")
    return Made(ground.fails("replay.nothing-visible", DAY), names=(HOURLY,))


@state("replay.waiting", full=True)
def replay_waiting(ground: Ground) -> Made:
    """With `ordered: false` a slice behind the held one is visible."""
    sandbox = ground.empty()
    spec = REPLAYED.replace("time_column: hour", "time_column: hour, ordered: false")
    _pipeline(sandbox, spec)
    _land(sandbox, 0, "01T05")
    sandbox.drain(HOURLY)
    _pipeline(sandbox, spec, quality_yaml=FAILS)
    _land(sandbox, 1, "01T06", "02T06")
    sandbox.drain(HOURLY)
    _pipeline(sandbox, spec, quality_yaml="rules: []\n")
    _land(sandbox, 2, "03T06", "04T06")
    sandbox.run(HOURLY)
    return Made(ground.fails("replay.waiting", DAY), again=DAY, names=(HOURLY,))


@state("replay.files-gone")
def files_gone(ground: Ground) -> Made:
    sandbox = ground.base("two days", lambda: _two_days(ground))
    file = sandbox.storage / "landing/events/1.json"
    away = shutil.move(file, ground.root / "1.json")
    error = ground.fails("replay.files-gone", DAY)
    return Made(error, hands={"restore them": lambda: shutil.move(away, file)}, again=DAY, names=(HOURLY,))


DAILY = "backfill daily --from 2024-01-01 --to 2024-01-02"


def _chain(ground: Ground) -> Sandbox:
    """`daily` adds up the table of `hourly`."""
    sandbox = ground.base("two days", lambda: _two_days(ground))
    _daily(sandbox)
    return sandbox


def _daily(sandbox: Sandbox, options: str = "{skipChangeCommits: true}", more: str = "") -> None:
    spec = REPLAYED.replace(
        "format: json\n    path: landing/events\n    schema: events.ddl\n    watermark: {column: at, ",
        f"format: delta\n    path: tables/hourly\n    options: {options}\n    watermark: {{column: hour, ",
    ).replace(
        "path: tables/hourly, schema: hourly.ddl, time_column: hour",
        "path: tables/daily, schema: daily.ddl, time_column: day",
    )
    sql = "SELECT window.start AS day, sum(n) AS n FROM events GROUP BY window(hour, '1 day')"
    sandbox.pipeline("daily", spec + more, daily_ddl="day TIMESTAMP, n BIGINT", transform_sql=sql)


@state("replay.source-ahead", full=True)
def source_ahead(ground: Ground) -> Made:
    sandbox = _chain(ground)
    sandbox.run("daily")
    ground.well(DAY)
    ground.forget()
    return Made(ground.fails("replay.source-ahead", DAILY), again=DAILY, names=("daily",))


@state("replay.version-gone", full=True)
def version_gone(ground: Ground) -> Made:
    sandbox = _chain(ground)
    sandbox.run("daily")
    table = DeltaTable(str(sandbox.storage / "tables/hourly"))
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    ground.forget()
    return Made(ground.fails("replay.version-gone", DAILY), again=DAILY, names=("daily",))


@state("replay.half-read", full=True)
def half_read(ground: Ground) -> Made:
    sandbox = _chain(ground)
    sandbox.run("daily")
    _land(sandbox, 3, *(f"03T{hour:02}" for hour in range(7, 24)), "05T01", "05T02")
    sandbox.run(HOURLY)
    _daily(sandbox, "{skipChangeCommits: true, maxFilesPerTrigger: 1}", "drain: {max_batches: 1}\n")
    sandbox.run("daily")
    return Made(ground.fails("replay.half-read", DAILY), again=DAILY, names=("daily",))


@state("replay.downstream", full=True)
def downstream(ground: Ground) -> Made:
    """A notice: the reader's own output is still that of the old rows."""
    sandbox = _chain(ground)
    sandbox.run("daily")
    ground.well(DAY)
    with sandbox.metastore() as metastore:
        [notice] = metastore.runs(HOURLY)[0].notices
    ground.forget()
    sandbox.run("daily")
    return Made(DrawdownError(notice["id"], notice["what"], do=notice["do"]), names=("daily",))


SET_ASIDE = """
sources:
  events:
    format: csv
    path: landing/events
    schema: events.ddl
    options: {header: true}
    watermark: {column: at, delay: 0 seconds}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: events.ddl, time_column: at}
state: {partitions: 2}
replay: {interval: 1 day}
"""


@state("replay.decided", full=True)
def decided(ground: Ground) -> Made:
    """A row was patched and replayed, and its file is not as it was."""
    sandbox = ground.empty()

    def judge_by(most: int) -> None:
        rules = f"rules: [{{name: small, check: v < {most}, on_fail: quarantine}}]\n"
        sandbox.pipeline(
            HOURLY,
            SET_ASIDE,
            events_ddl="id INT, at TIMESTAMP, v INT",
            transform_sql="SELECT * FROM events",
            quality_yaml=rules,
        )

    judge_by(10)
    records = ["1,2024-01-01T10:00:00Z,1", "3,2024-01-01T11:00:00Z,30"]
    file = sandbox.land("landing/events/a.csv", ["id,at,v", *records], mtime=1)
    sandbox.run(HOURLY)
    sandbox.land("landing/events/b.csv", ["id,at,v", "2,2024-01-03T10:00:00Z,2"], mtime=2)
    sandbox.run(HOURLY)
    ground.well(f"quarantine replay {HOURLY} --set 'v = 7' --why ...")
    kept = file.read_text()

    def write(text: str) -> None:
        file.write_text(text)
        os.utime(file, (1, 1))

    write(kept.replace("3,", "4,"))
    error = ground.fails("replay.decided", DAY)
    return Made(error, hands={"bring back their files": lambda: write(kept)}, again=DAY, names=(HOURLY,))
