"""Files that are not what they seem: rewritten, gone, half-written, too old, from the future; late rows.

Each is found, named by the plan and by the run under one id, and the rows are those of a control that met
well-behaved files.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from drawdown.application import SparkApplication
from drawdown.application.watcher import Report, Watcher
from drawdown.errors import RefusedError, SourceError
from drawdown.metastore.records import Run
from drawdown.plan.preflight import Preflight
from drawdown.spec import Pipeline, load_pipeline
from drawdown.workspace import Workspace
from tests.support.deaths import die
from tests.support.refusals import planned, refused
from tests.support.sandbox import Sandbox, multiset
from tests.support.verdicts import verdicts

SPEC = """
sources:
  rows: {format: csv, path: landing/rows, schema: "id INT, name STRING", MORE}
transform: transform.sql
sink: {format: FORMAT, path: tables/out, schema: out.ddl, publish: PUBLISH}
state: {partitions: 2}
"""
ASIDE = {"out_ddl": "id INT, name STRING", "transform_sql": "SELECT id, name FROM rows"}
DAY = 86_400


def _project(
    root: Path, spark: SparkSession, more: str = "options: {}", sink: str = "delta audited"
) -> Sandbox:
    sandbox = Sandbox(root, spark)
    _spec(sandbox, more, sink)
    return sandbox


def _spec(sandbox: Sandbox, more: str, sink: str = "delta audited") -> None:
    format, publish = sink.split()
    spec = SPEC.replace("MORE", more).replace("FORMAT", format).replace("PUBLISH", publish)
    sandbox.pipeline("lies", spec, **ASIDE)


def _land(sandbox: Sandbox, *ids: int, at: float = 1_700_000_000) -> None:
    for id in ids:
        sandbox.land(f"landing/rows/{id}.csv", [f"{id},one"], mtime=at + id)


def _rows(sandbox: Sandbox) -> Any:
    return multiset(sandbox.delta("tables/out"))


def _notices(run: Run) -> list[tuple[str, str]]:
    return [(notice["id"], notice["about"]) for notice in run.notices]


@pytest.mark.fault("F18", "delta")
def test_a_processed_file_that_was_rewritten_is_named_once_and_changes_nothing(
    tmp_path: Path, spark: SparkSession
) -> None:
    control, lied = _project(tmp_path / "control", spark), _project(tmp_path / "lied", spark)
    for sandbox in (control, lied):
        _land(sandbox, 1, 2, 3)
        sandbox.run("lies")
    _land(lied, 1, at=1_700_000_500)  # the same size
    lied.land("landing/rows/2.csv", ["2,other"], mtime=1_700_000_002)  # the same time

    found = verdicts(lied, "lies")["source.rewritten"]
    assert (found.level, found.about) == ("warning", "rows")
    assert all(f"{lied.storage}/landing/rows/{id}.csv" in found.what for id in (1, 2))
    run = lied.run("lies")
    assert _notices(run) == [("source.rewritten", "rows")]
    assert run.counts.read == 0
    assert lied.drain("lies")[0] == Report("lies"), "said once"
    assert _rows(lied) == _rows(control)

    _spec(lied, "policy: {rewritten: fail}")
    _land(lied, 3, at=1_700_000_500)
    error = refused(lied, "lies", "source.rewritten", RefusedError)
    assert "3.csv" in error.what
    os.utime(lied.storage / "landing/rows/3.csv", (1_700_000_003, 1_700_000_003))
    _land(lied, 4)
    _land(control, 4)
    for sandbox in (control, lied):
        assert sandbox.run("lies").notices == []
    assert _rows(lied) == _rows(control)


@pytest.mark.fault("F19", "delta")
@pytest.mark.fault("F20", "delta")
def test_a_file_that_changes_or_goes_before_its_batch_is_replayed_stops_the_run(
    tmp_path: Path, spark: SparkSession
) -> None:
    control, lied = _project(tmp_path / "control", spark), _project(tmp_path / "lied", spark)
    for sandbox in (control, lied):
        _land(sandbox, 1, 2)
    control.run("lies")
    die(lied, "lies", "after batch.stage")
    file = lied.storage / "landing/rows/1.csv"
    aside = file.rename(lied.root / "1.csv")

    gone = lied.drain("lies")[0].error
    assert isinstance(gone, SourceError)
    assert (gone.id, str(file) in gone.what) == ("source.gone", True)
    assert "cp -p" in gone.do

    file.write_text("1,three\n")
    os.utime(file, (1_700_000_001, 1_700_000_001))  # as if it were the same: its size tells
    error = refused(lied, "lies", "source.rewritten", RefusedError)
    assert str(file) in error.what
    assert _rows(lied) == multiset([])

    aside.rename(file)
    lied.run("lies")
    assert _rows(lied) == _rows(control)
    assert lied.drain("lies")[0] == Report("lies")


@pytest.mark.fault("F19", "files")
@pytest.mark.full
def test_a_rewritten_file_is_replayed_as_it_is_now_when_the_policy_says_so(
    tmp_path: Path, spark: SparkSession
) -> None:
    more = "policy: {rewritten: warn}"
    control, lied = (_project(tmp_path / n, spark, more, "parquet direct") for n in ("control", "lied"))
    _land(lied, 1, 2)
    die(lied, "lies", "before batch.stage")
    for sandbox in (control, lied):
        _land(sandbox, 1, 2)
        sandbox.land("landing/rows/1.csv", ["1,three"], mtime=1_700_000_600)
        run = sandbox.run("lies")
    assert ("source.rewritten", "rows") in _notices(run)
    rows = [spark.read.parquet(str(w.storage / "tables/out")).collect() for w in (control, lied)]
    assert multiset(rows[0]) == multiset(rows[1])


@pytest.mark.fault("F21", "delta")
def test_names_of_unfinished_files_are_not_read(tmp_path: Path, spark: SparkSession) -> None:
    sandbox = _project(tmp_path / "lied", spark)
    _land(sandbox, 1)
    for name in (".2.csv", "_3.csv", "4.csv._COPYING_", "5.csv.tmp", "6.part", "7.csv.filepart", "8.csv~"):
        sandbox.land(f"landing/rows/{name}", ["9,half"])
    assert sandbox.run("lies").counts.read == 1
    assert sandbox.drain("lies")[0] == Report("lies")
    (sandbox.storage / "landing/rows/5.csv.tmp").rename(sandbox.storage / "landing/rows/5.csv")
    assert sandbox.run("lies").counts.read == 1
    assert _rows(sandbox) == multiset([(1, "one"), (9, "half")])


class _Writer(Watcher):
    """Begins a file when a run has looked, and ends it when Spark has taken it into a batch."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._storage = sandbox.storage
        self.ends = threading.Thread(target=self._end)

    def looked(self, pipeline: Pipeline, found: Preflight) -> None:
        (self._storage / "landing/rows/2.csv").write_text("2,one\n3,o")
        self.ends.start()

    def _end(self) -> None:
        while not (self._storage / "_drawdown/lies/checkpoint-1/offsets/0").exists():
            time.sleep(0.05)
        with (self._storage / "landing/rows/2.csv").open("a") as half:
            half.write("ne\n")


@pytest.mark.fault("F21", "delta")
def test_a_file_that_is_still_being_written_delays_the_start_and_is_read_whole(
    tmp_path: Path, spark: SparkSession
) -> None:
    sandbox = _project(tmp_path / "lied", spark, "settle: 4 seconds")
    sandbox.land("landing/rows/1.csv", ["1,one"])
    written = time.time()
    writer = _Writer(sandbox)
    with sandbox.metastore() as metastore:
        application = SparkApplication(Workspace(sandbox.project, metastore), session=spark, watcher=writer)
        report = application.drain_all([load_pipeline(sandbox.project, "lies")])[0]
    writer.ends.join()
    assert report.run is not None, report.error
    assert report.run.started_at is not None
    assert report.run.started_at.timestamp() >= written + 3.9, "1.csv delayed the start"
    assert "2.csv of rows was still being written: left for the next run" in str(report.run.stop_reason)
    assert _rows(sandbox) == multiset([])

    sandbox.run("lies")
    assert _rows(sandbox) == multiset([(1, "one"), (2, "one"), (3, "one")])
    assert sandbox.drain("lies")[0] == Report("lies")


@pytest.mark.fault("F22", "delta")
def test_a_file_that_is_too_old_is_named_and_taken_when_the_age_is_raised(
    tmp_path: Path, spark: SparkSession
) -> None:
    control = _project(tmp_path / "control", spark, "options: {maxFileAge: 100d}")
    lied = _project(tmp_path / "lied", spark, "options: {maxFileAge: 1h}")
    for sandbox in (control, lied):
        _land(sandbox, 1)
        sandbox.run("lies")
        _land(sandbox, 2, at=1_700_000_000 - 2 * DAY)
        _land(sandbox, 3)
        run = sandbox.run("lies")
    assert _notices(run) == [("source.too-old", "rows")]
    assert "2.csv is older" in verdicts(lied, "lies")["source.too-old"].what
    _spec(lied, "options: {maxFileAge: 1h}, policy: {too_old: fail}")
    _land(lied, 4)
    assert "maxFileAge" in refused(lied, "lies", "source.too-old", RefusedError).do

    _spec(lied, "options: {maxFileAge: 100d}")
    _land(control, 4)
    for sandbox in (control, lied):
        assert sandbox.run("lies").notices == []
    assert _rows(lied) == _rows(control)
    assert lied.drain("lies")[0] == Report("lies")


@pytest.mark.fault("F23", "delta")
def test_a_file_from_the_future_is_named_and_not_read_until_it_is_fixed(
    tmp_path: Path, spark: SparkSession
) -> None:
    control, lied = _project(tmp_path / "control", spark), _project(tmp_path / "lied", spark)
    now = time.time()
    for sandbox in (control, lied):
        _land(sandbox, 1)
        _land(sandbox, 2, at=now + (30 * DAY if sandbox is lied else -60))
    error = refused(lied, "lies", "source.future-mtime", RefusedError)
    assert f"{lied.storage}/landing/rows/2.csv" in error.what
    assert "touch" in error.do
    (lied.storage / "landing/rows/2.csv").touch()
    for sandbox in (control, lied):
        sandbox.run("lies")
        _land(sandbox, 3, at=now)
        sandbox.run("lies")
    assert _rows(lied) == _rows(control)

    _spec(lied, "policy: {future_mtime: warn}")
    _land(lied, 4, at=now + 30 * DAY)
    assert _notices(lied.run("lies")) == [("source.future-mtime", "rows")]
    _land(lied, 5, at=now)
    assert lied.drain("lies")[0] == Report("lies")
    assert "5.csv is older" in verdicts(lied, "lies")["source.too-old"].what, "what the warning meant"


@pytest.mark.fault("F26", "delta")
def test_late_rows_are_counted_and_kept_when_the_source_says_so(tmp_path: Path, spark: SparkSession) -> None:
    counted, kept = Sandbox(tmp_path / "counted", spark), Sandbox(tmp_path / "kept", spark)
    for sandbox, late in ((counted, "count"), (kept, "keep")):
        sandbox.pipeline(
            "late",
            f"""
            sources:
              rows:
                format: json
                path: landing/rows
                schema: "id INT, at TIMESTAMP"
                options: {{maxFilesPerTrigger: 1}}
                watermark: {{column: at, delay: 10 minutes, late: {late}}}
            transform: transform.sql
            sink: {{format: delta, path: tables/out, schema: out.ddl}}
            state: {{partitions: 2}}
            """,
            out_ddl="hour TIMESTAMP, n BIGINT",
            transform_sql="""
                SELECT window.start AS hour, count(*) AS n
                FROM (SELECT window(at, '1 hour') AS window FROM rows) GROUP BY window
            """,
        )
        for file, hour in enumerate(("10", "12", "14", "16")):
            late_rows = [{"id": 9, "at": f"2024-01-01T0{i}:00:00Z"} for i in range(3)] if hour == "14" else []
            rows = [{"id": file, "at": f"2024-01-01T{hour}:00:00Z"}, *late_rows]
            sandbox.land_json(f"landing/rows/{file}.json", rows, mtime=1_700_000_000 + file)
    runs = [sandbox.run("late") for sandbox in (counted, kept)]
    assert [run.counts.late for run in runs] == [3, 3]
    assert all(run.counts.balanced for run in runs)
    assert multiset(kept.delta("tables/out")) == multiset(counted.delta("tables/out"))
    assert counted.quarantined("late") == []
    assert [(row["reasons"], row["payload"]) for row in kept.quarantined("late")] == [
        (["late"], f'{{"id":9,"at":"2024-01-01T0{i}:00:00.000Z"}}') for i in range(3)
    ]
    assert planned(kept, "late").errors == ()
