"""The soak: drains of several pipelines are killed at random while data keeps landing, then counted.

    make soak MINUTES=5 SEED=1

One application after the other drains all pipelines. Most die: by SIGKILL after a random time, or at a random
step. A last, unharmed run follows, and an oracle in plain Python says what must be there. Data and schedule
follow from the seed; how far a drain comes in its time does not. The last line has kills, runs, rows that
landed, and rows that were lost or are there too often. Exit code 1: not as it must be.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow.parquet as pq

from drawdown.fault_points import FAULT, STEPS
from drawdown.testing.servers.kafka import KafkaServer
from drawdown.testing.servers.postgres import PostgresServer
from tests.support.command_line import DRAWDOWN
from tests.support.database import TestDatabase
from tests.support.deaths import free_lease
from tests.support.sandbox import Sandbox
from tests.support.spark import ROOT
from tests.support.topics import Topic, records

START = datetime(2024, 1, 1, tzinfo=UTC)
PER_FILE = 200
BAD = 97
"""Every such id is put aside by a rule."""

SPEC = """
sources:
  events:
    format: json
    path: landing/events
    schema: events.ddl
    options: {{maxFilesPerTrigger: 20}}
    watermark: {{column: at, delay: 10 minutes}}
transform: transform.sql
sink: {{{sink}}}
state: {{partitions: 2}}
"""
EVENTS = "id BIGINT, k STRING, at TIMESTAMP"
QUALITY = f"rules: [{{name: good, check: id % {BAD} <> 0, on_fail: quarantine}}]\n"


@dataclass(frozen=True)
class Event:
    """A row that lands."""

    id: int
    k: str
    at: datetime


_PATIENCE = 60.0
"""Seconds after which a run is killed that has not come to its step: not every run does."""

Rows = Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class Soaked:
    """A pipeline of the soak: what it does, what readers of its sink see, and what they must see."""

    sink: str
    sql: str
    ddl: str | None
    read: Callable[[Sandbox, str], Rows]
    oracle: Callable[[list[Event]], Iterable[tuple[Any, ...]]]


def of_delta(sandbox: Sandbox, name: str) -> Rows:
    return Counter(sandbox.delta(f"tables/{name}"))


def of_files(sandbox: Sandbox, name: str) -> Rows:
    """The files that the sink's own log names, which is what Spark reads."""
    log = sandbox.storage / "tables" / name / "_spark_metadata"
    shown = duckdb.sql(f"SELECT DISTINCT path FROM read_json('{log}/*', format='newline_delimited',"
                       " columns={path: 'VARCHAR'}, ignore_errors=true) WHERE path IS NOT NULL")  # fmt: skip
    found: Rows = Counter()
    for (path,) in shown.fetchall():
        found.update(tuple(row.values()) for row in pq.read_table(path.removeprefix("file:")).to_pylist())
    return found


def of_postgres(sandbox: Sandbox, name: str) -> Rows:
    database = sandbox.project.databases["default"]
    assert database.password is not None
    where = {key: getattr(database, key) for key in ("host", "port", "dbname", "user")}
    with psycopg.connect(**where, password=database.password.get_secret_value()) as connection:
        return Counter(connection.execute(f"SELECT * FROM public.{name}").fetchall())  # type: ignore[arg-type]


def of_topic(sandbox: Sandbox, name: str) -> Rows:
    """As readers of committed records see it."""
    read = records(sandbox.project.brokers["default"], name)
    return Counter((int(value), key) for _, key, value, _ in read)


def everything(events: list[Event]) -> Iterable[tuple[Any, ...]]:
    return [(e.id, e.k) for e in events]


def hours(events: list[Event]) -> Iterable[tuple[Any, ...]]:
    """But the last hour, which is still open."""
    counted = Counter(event.at.replace(minute=0, second=0) for event in events)
    return [(hour, n) for hour, n in counted.items() if hour != max(counted)]


def totals(events: list[Event]) -> Iterable[tuple[Any, ...]]:
    counted, newest = Counter(e.k for e in events), {e.k: e.id for e in events}
    return [(k, n, newest[k]) for k, n in counted.items()]


WINDOWS = "SELECT window.start AS hour, count(*) AS n FROM events GROUP BY window(at, '1 hour')"
TOTALS = "SELECT k, count(*) AS n, max(id) AS newest FROM events GROUP BY k"
ALL = "SELECT id, k FROM events"

RECORDS = "SELECT string(id) AS value, k AS key FROM events"

_DELTA = "format: delta, schema: out.ddl, path: tables"
_POSTGRES = "format: postgres, schema: out.ddl, table: public"
_ALL, _TOTALS = "id BIGINT, k STRING", "k STRING, n BIGINT, newest BIGINT"
_UPDATE = "mode: update, keys: [k]"
PIPELINES = {
    "append": Soaked(f"{_DELTA}/append", WINDOWS, "hour TIMESTAMP, n BIGINT", of_delta, hours),
    "direct": Soaked(f"{_DELTA}/direct, publish: direct", ALL, _ALL, of_delta, everything),
    "update": Soaked(f"{_DELTA}/update, {_UPDATE}", TOTALS, _TOTALS, of_delta, totals),
    "files": Soaked(
        "format: parquet, schema: out.ddl, path: tables/files, publish: direct",
        ALL,
        _ALL,
        of_files,
        everything,
    ),
    "rows": Soaked(f"{_POSTGRES}.rows", ALL, _ALL, of_postgres, everything),
    "keyed": Soaked(f"{_POSTGRES}.keyed, {_UPDATE}", TOTALS, _TOTALS, of_postgres, totals),
    "topic": Soaked("format: kafka, topic: topic", RECORDS, None, of_topic, everything),
}


@dataclass
class Landing:
    """Files that arrive one after the other, by a thread, until it is told to end."""

    sandbox: Sandbox
    chance: random.Random
    events: list[Event] = field(default_factory=list)
    files: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def land(self, ahead: timedelta = timedelta()) -> None:
        """Each file is a minute later than the one before: no row is late."""
        at = START + ahead + timedelta(minutes=self.files)
        begin = len(self.events)
        new = [
            Event(id, f"k{self.chance.randrange(50)}", at + timedelta(seconds=self.chance.randrange(60)))
            for id in range(begin, begin + PER_FILE)
        ]
        rows = [{"id": e.id, "k": e.k, "at": e.at.isoformat()} for e in new]
        self.sandbox.land_json(f"landing/events/{self.files:06}.json", rows)
        self.events += new
        self.files += 1

    def keep_landing(self) -> None:
        while not self.ended.wait(self.chance.uniform(0.5, 3)):
            self.land()


@dataclass
class Soak:
    """The application runs of a soak, and how many there were."""

    sandbox: Sandbox
    chance: random.Random
    kills: int = 0
    runs: int = 0
    failed: list[str] = field(default_factory=list)

    def run(self, fault: str = "", seconds: float | None = None) -> None:
        """Drain all pipelines; `seconds`: to live."""
        begun = time.monotonic()
        process = subprocess.Popen(
            [*DRAWDOWN, "run", "--all"],
            cwd=self.sandbox.root,
            env={**os.environ, FAULT: fault, "PYTHONPATH": str(ROOT / "include")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        timer = threading.Timer(seconds or 3600, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        said, _ = process.communicate()
        timer.cancel()
        self.runs += 1
        killed = process.returncode == -signal.SIGKILL
        if killed:
            self.kills += 1
            free_lease(self.sandbox)
        elif process.returncode:
            self.failed.append(said)
        what = fault or (f"kill after {seconds:.1f} s" if seconds else "unharmed")
        came = "killed" if killed else "failed" if process.returncode else "ended"
        print(f"{what}: {came} after {time.monotonic() - begun:.1f} s", flush=True)

    def strike(self) -> None:
        """One run that most often dies."""
        kind = self.chance.random()
        step, when = self.chance.choice(list(STEPS)), self.chance.choice(["before", "after"])
        nth, seconds = self.chance.randint(1, len(PIPELINES) // 2), self.chance.uniform(3, 40)
        if kind < 0.5:
            self.run(fault=f"kill {when} {step} {nth}", seconds=_PATIENCE)
        elif kind < 0.9:
            self.run(seconds=seconds)
        else:
            self.run()


def project(root: Path, server: PostgresServer, broker: KafkaServer) -> Sandbox:
    Topic(broker, "topic")
    sandbox = Sandbox(root, kafka=broker.bootstrap_servers, more=TestDatabase(server).project_lines)
    for name, soaked in PIPELINES.items():
        files = {"events_ddl": EVENTS, "transform_sql": soaked.sql, "quality_yaml": QUALITY}
        if soaked.ddl is not None:
            files["out_ddl"] = soaked.ddl
        sandbox.pipeline(name, SPEC.format(sink=soaked.sink), **files)
    return sandbox


def compared(sandbox: Sandbox, events: list[Event]) -> tuple[int, int]:
    """Rows lost and rows too many, over all sinks and their quarantine."""
    good = [event for event in events if event.id % BAD]
    lost = duplicated = 0
    for name, soaked in PIPELINES.items():
        aside = Counter((row["payload"],) for row in sandbox.quarantined(name))
        expected, found = Counter(soaked.oracle(good)), soaked.read(sandbox, name)
        missing, extra = expected - found, found - expected
        lost += missing.total() + max(0, len(events) - len(good) - aside.total())
        duplicated += extra.total() + max(0, aside.total() - (len(events) - len(good)))
        for sign, rows in (("-", missing), ("+", extra)):
            for row in list(rows)[:5]:
                print(f"{name}: {sign} {row}")
    return lost, duplicated


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    deadline = time.monotonic() + asked.minutes * 60
    with (
        tempfile.TemporaryDirectory(prefix="drawdown-soak-") as folder,
        PostgresServer() as server,
        KafkaServer(Path(folder) / "kafka", state_dir=ROOT / ".drawdown") as broker,
    ):
        sandbox = project(Path(folder) / "project", server, broker)
        landing = Landing(sandbox, random.Random(f"data {asked.seed}"))
        soak = Soak(sandbox, random.Random(f"kills {asked.seed}"))
        landing.land()
        thread = threading.Thread(target=landing.keep_landing, daemon=True)
        thread.start()
        while time.monotonic() < deadline:
            soak.strike()
        landing.ended.set()
        thread.join()
        # A row a day later closes every hour before it.
        landing.land(ahead=timedelta(days=1))
        soak.run()
        lost, duplicated = compared(sandbox, landing.events)
    for said in soak.failed:
        print(f"a run failed:\n{said}")
    counts = f"{soak.kills} kills, {soak.runs} runs, {len(landing.events)} rows"
    print(f"{counts}, {lost} lost, {duplicated} duplicated")
    return 1 if lost or duplicated or soak.failed else 0


if __name__ == "__main__":
    sys.exit(main())
