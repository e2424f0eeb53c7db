"""One pipeline on every kind of sink, and what must be equal between one that died and one that never did.

A sink is one entry of KINDS: tests/faults/test_kill_matrix.py strikes at every step of each.
"""

from __future__ import annotations

import io
import json
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from drawdown.metastore.records import Counts
from drawdown.spark.object_storage import reach_buckets
from drawdown.spec import load_pipeline
from drawdown.storage import Storage
from drawdown.values.kafka_names import ledger_topic
from tests.support.bucket_sandbox import BucketSandbox
from tests.support.database import TestDatabase
from tests.support.google_sandbox import GoogleSandbox
from tests.support.sandbox import Sandbox, multiset
from tests.support.topics import Topic, delete_topic, records

SPEC = """
sources:
  events:
    format: csv
    path: landing/events
    schema: events.ddl
    options: {header: true, maxFilesPerTrigger: 1}
    watermark: {column: at, delay: 1 minute}
transform: transform.sql
sink: {SINK}
state: {partitions: 2}
"""
HOURLY = """
    SELECT window.start AS hour, count(*) AS n
    FROM (SELECT window(at, '1 hour') AS window FROM events) GROUP BY window
"""
FILES = {
    "events_ddl": "id INT, at TIMESTAMP",
    "out_ddl": "hour TIMESTAMP, n BIGINT",
    "transform_sql": HOURLY,
    "quality_yaml": "rules: [{name: small, check: id < 90, on_fail: quarantine}]\n",
}
NAME = "hourly"
TABLE = "tables/hourly"
BATCHES = 2
"""Files of a wave: the second closes a window of the first; a batch without data closes one of its own."""

Rows = Counter[tuple[Any, ...]]


def _delta_rows(sandbox: Sandbox) -> Rows:
    return multiset(sandbox.delta(TABLE)) if _below(sandbox, TABLE) else Counter()


def _postgres_rows(sandbox: Sandbox) -> Rows:
    database = sandbox.project.databases["default"]
    assert database.password is not None
    where = {key: getattr(database, key) for key in ("host", "port", "dbname", "user")}
    with psycopg.connect(**where, password=database.password.get_secret_value()) as connection:
        if connection.execute("SELECT to_regclass('public.hourly')").fetchone() == (None,):
            return Counter()
        return Counter(connection.execute("SELECT * FROM public.hourly").fetchall())


def _topic_rows(sandbox: Sandbox) -> Rows:
    """As readers of committed records see them."""
    project = sandbox.project
    topic = load_pipeline(project, NAME).sink.topic
    assert topic is not None
    read = records(project.brokers["default"], topic)
    return Counter((key, value) for _, key, value, _ in read)


def _parquet_rows(sandbox: Sandbox) -> Rows:
    """As Spark's readers see a folder: by the sink's own log; where it names none there are no columns."""
    assert sandbox.spark is not None
    if not any(Path(path).name[0].isdigit() for path in _below(sandbox, f"{TABLE}/_spark_metadata")):
        return Counter()
    # What died was another process: this session may not know the bucket yet.
    reach_buckets(sandbox.spark, sandbox.project)
    folder = Storage.of(sandbox.project).path(TABLE)
    return multiset(tuple(row) for row in sandbox.spark.read.parquet(folder).collect())


def _below(sandbox: Sandbox, folder: str) -> list[str]:
    """The files below a folder of the storage root, relative to the root."""
    return [path for path in sandbox.snapshot() if path.startswith(f"{folder}/")]


@dataclass(frozen=True)
class Kind:
    """A kind of sink.

    Attributes:
        sink: as marks name it.
        spec: keys of its `sink:`.
        rows: what readers see.
        passes_by: steps that this kind never comes to.
        server: the fixture of the server that it needs.
    """

    sink: str
    spec: str
    rows: Callable[[Sandbox], Rows]
    passes_by: frozenset[str] = frozenset()
    server: str = ""

    @property
    def appends(self) -> bool:
        return "mode:" not in self.spec

    def project(self, root: Path, spark: SparkSession | None, server: Any = None) -> Sandbox:
        """An empty one; on a server it has a topic or a database of its own.

        All pipelines of the name share a broker's ledger: an earlier project has ended.
        """
        topic, keys, files = f"hourly-{uuid.uuid4().hex}", f"schema: out.ddl, {self.spec}", dict(FILES)
        if self.server == "broker":
            Topic(server, topic)
            delete_topic(server, ledger_topic(NAME))
            sandbox = Sandbox(root, spark, kafka=server.bootstrap_servers)
            keys = f"{self.spec}, topic: {topic}"
            files["transform_sql"] = f"SELECT string(hour) AS key, string(n) AS value FROM ({HOURLY})"
            del files["out_ddl"]
        elif self.server == "postgres_server":
            sandbox = Sandbox(root, spark, more=TestDatabase(server).project_lines)
        elif self.server == "s3":
            sandbox = BucketSandbox(root, spark, server)
        elif self.server == "gcs":
            sandbox = GoogleSandbox(root, spark, server)
        else:
            sandbox = Sandbox(root, spark)
        sandbox.pipeline(NAME, SPEC.replace("SINK", keys), **files)
        return sandbox


_DELTA = f"format: delta, path: {TABLE}"
_SENT, _COPIED, _SHOWN = {"publish.send", "publish.file"}, {"publish.copy"}, {"batch.show"}
_DIRECT = frozenset(_SENT | _COPIED)
_AUDITED = _DIRECT | _SHOWN
_POSTGRES = "format: postgres, table: public.hourly"

KINDS = {
    "delta append audited": Kind("delta", _DELTA, _delta_rows, _AUDITED),
    "delta append direct": Kind("delta", f"{_DELTA}, publish: direct", _delta_rows, _DIRECT),
    "delta update audited": Kind("delta", f"{_DELTA}, mode: update, keys: [hour]", _delta_rows, _AUDITED),
    "delta update direct": Kind(
        "delta", f"{_DELTA}, mode: update, keys: [hour], publish: direct", _delta_rows, _DIRECT
    ),
    "delta complete audited": Kind("delta", f"{_DELTA}, mode: complete", _delta_rows, _AUDITED),
    "delta complete direct": Kind(
        "delta", f"{_DELTA}, mode: complete, publish: direct", _delta_rows, _DIRECT
    ),
    "parquet files": Kind(
        "files", f"format: parquet, path: {TABLE}, publish: direct", _parquet_rows, _DIRECT
    ),
    "postgres append": Kind(
        "postgres", _POSTGRES, _postgres_rows, frozenset(_SENT | _SHOWN), "postgres_server"
    ),
    "postgres update": Kind(
        "postgres",
        f"{_POSTGRES}, mode: update, keys: [hour]",
        _postgres_rows,
        frozenset(_SENT | _SHOWN),
        "postgres_server",
    ),
    "delta append audited in a bucket": Kind("delta", _DELTA, _delta_rows, _AUDITED, "s3"),
    "parquet files in a bucket": Kind(
        "files", f"format: parquet, path: {TABLE}, publish: direct", _parquet_rows, _DIRECT, "s3"
    ),
    "kafka": Kind(
        "kafka", "format: kafka, publish: audited", _topic_rows, frozenset(_COPIED | _SHOWN), "broker"
    ),
}

IN_GOOGLES_BUCKET = {
    "delta": Kind("delta", _DELTA, _delta_rows, _AUDITED, "gcs"),
    "parquet": Kind(
        "files", f"format: parquet, path: {TABLE}, publish: direct", _parquet_rows, _DIRECT, "gcs"
    ),
}
"""No part of the matrix: tests/object_storage/test_google.py strikes at a few steps of each."""


def land(sandbox: Sandbox, wave: int) -> None:
    """Per file two hours of good rows, one that a rule puts aside, and one that cannot be read."""
    for number in range(wave * BATCHES, (wave + 1) * BATCHES):
        first, second = (
            f"2024-01-{1 + hour // 24:02}T{hour % 24:02}" for hour in (2 * number, 2 * number + 1)
        )
        rows = [f"{i},{first}:0{i}:00Z" for i in range(3)] + [f"{i},{second}:0{i}:00Z" for i in range(5)]
        rows += [f"99,{first}:09:00Z", "broken"]
        sandbox.land(f"landing/events/{number}.csv", ["id,at", *rows], mtime=number + 1)


@dataclass(frozen=True)
class Ended:
    """What a project has come to; equal to that of a control, whatever happened on the way."""

    rows: Rows
    rejected: list[tuple[Any, ...]]
    batches: list[tuple[Any, ...]]
    in_runs: Counts
    waiting: list[str]
    strays: list[str]


def ended(kind: Kind, sandbox: Sandbox) -> Ended:
    """After a run that went well. The counts of all runs, dead ones too, add up to those of the batches."""
    with sandbox.metastore() as metastore:
        batches = metastore.batches(NAME, 1)
        files = metastore.staged_files(NAME, 1, [b.batch_id for b in batches])
        runs = metastore.runs(NAME)
        assert metastore.holder_of(NAME) is None, "nothing is left locked"
    described = []
    storage, there = Storage.of(sandbox.project), {*sandbox.snapshot()}
    for batch in batches:
        own = [f for batch_id, f in files if batch_id == batch.batch_id]
        rows = {t: sum(f.rows for f in own if f.table == t) for t in ("output", "quarantine")}
        described.append((batch.batch_id, batch.counts, batch.by_source, batch.watermark, batch.status, rows))
        # A publish takes merged files away, and snapshots that a later one has superseded.
        if kind.appends and kind.sink in ("delta", "files"):
            assert {storage.relative(f.path) for f in own} <= there
    rejected = sandbox.quarantined(NAME)
    return Ended(
        rows=kind.rows(sandbox),
        rejected=sorted((str(row["reasons"]), row["payload"], row["batch_id"]) for row in rejected),
        batches=described,
        # Only Spark itself knows late groups, and takes them along when it dies.
        in_runs=replace(sum((run.counts for run in runs), Counts()), late_groups=0),
        waiting=[path for path in sandbox.snapshot() if "/staged/" in path and path.endswith(".parquet")],
        strays=_strays(sandbox, {Path(f.path).name for _, f in files}),
    )


def _strays(sandbox: Sandbox, noted: set[str]) -> list[str]:
    """Files with rows that neither the metastore nor the table's log knows: dead attempts left them."""
    found = []
    for folder in (TABLE, f"quarantine/{NAME}"):
        known = noted | _ever_added(sandbox, folder)
        found += [
            Path(path).name
            for path in _below(sandbox, folder)
            if path.endswith(".parquet") and Path(path).name not in known and _rows_in(sandbox, path)
        ]
    return found


def _rows_in(sandbox: Sandbox, path: str) -> int:
    return int(pq.read_metadata(io.BytesIO(sandbox.read(path))).num_rows)


def _ever_added(sandbox: Sandbox, folder: str) -> set[str]:
    """Files that a commit of a Delta table has added, whether a later one removed them or not."""
    commits = [path for path in _below(sandbox, f"{folder}/_delta_log") if path.endswith(".json")]
    actions = [json.loads(line) for commit in commits for line in sandbox.read(commit).splitlines()]
    return {Path(action["add"]["path"]).name for action in actions if "add" in action}


def assert_one_more_run_is_a_no_op(sandbox: Sandbox) -> None:
    before = sandbox.snapshot()
    [report] = sandbox.drain(NAME)
    assert (report.run, report.error) == (None, None)
    assert sandbox.snapshot() == before
