"""Pipelines of one application go on together, each for itself; what waits for another comes after it."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from drawdown.application.log_lines import LogLines
from drawdown.application.watcher import Report, Watcher
from drawdown.checkpoint.checkpoint_files import CheckpointFiles
from drawdown.metastore.records import Batch, Run
from drawdown.spec import Pipeline
from tests.support.deaths import start_command
from tests.support.groups import Group
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.timeout(900)

UDF = """
from pyspark.sql import functions as F

def transform(sources):
    @F.udf("int")
    def same(x):
        {body}
        return x
    return sources["events"].select(same("id").alias("id"))
"""
SLEEPS = UDF.format(body="import time; time.sleep(3600)")
RAISES = UDF.format(body="raise ValueError('no such flight')")
STUCK = "drain: {stuck_after: 8 seconds}"


@pytest.fixture
def group(sandbox: Sandbox) -> Group:
    return Group(sandbox)


def _balances(run: Run) -> bool:
    counts = run.counts
    return counts.read == counts.malformed + counts.future + counts.quarantined + counts.fed


def test_the_foot_of_a_diamond_sees_what_its_upstreams_have_just_published(group: Group) -> None:
    group.copy("foot", reads=["left", "right"])
    group.copy("left", reads=["top"])
    group.copy("right", reads=["top"])
    group.copy("top")
    group.land("top", 1, 2)
    reports = group.drain()
    assert [next(iter(reports)), list(reports)[-1]] == ["top", "foot"]
    assert group.rows("foot") == [1, 1, 2, 2]


def test_one_that_fails_and_one_that_hangs_harm_no_other(group: Group) -> None:
    group.copy("good")
    group.copy("after", reads=["good"])
    group.copy("bad", python=RAISES)
    group.copy("hangs", python=SLEEPS, more=STUCK)
    group.copy("downstream", reads=["hangs"])
    for name in ("good", "bad", "hangs"):
        group.land(name, 1, 2)
        group.land(name, 3)
    lines = io.StringIO()
    reports = group.drain(LogLines(lines))

    errors = {name: report.error and report.error.id for name, report in reports.items()}
    assert errors == {
        "good": None,
        "after": None,
        "bad": "transform.raised",
        "hangs": "drain.stuck",
        "downstream": None,
    }
    assert group.rows("good") == group.rows("after") == [1, 2, 3]
    states = {name: group.last_run(name).state for name in ("good", "after", "bad", "hangs")}
    assert states == {"good": "succeeded", "after": "succeeded", "bad": "failed", "hangs": "failed"}
    error = group.last_run("hangs").error
    assert error is not None
    assert (error["id"], error["where"]) == ("drain.stuck", "pipeline hangs")
    assert "for 8 seconds since it began" in error["what"]
    assert "stuck_after" in error["do"]
    assert group.left_behind == [], "Spark has ended its Python worker"
    assert {line.partition(":")[0] for line in lines.getvalue().splitlines()} <= set(group.names)

    group.copy("hangs", more=STUCK.replace("8 seconds", "1 hour"))
    group.names = ["hangs", "downstream"]
    group.drain()
    assert group.rows("hangs") == group.rows("downstream") == [1, 2, 3]


MEETS = """
import time
from pathlib import Path
from pyspark.sql import functions as F

def transform(sources):
    session = sources["events"].sparkSession
    session.conf.set("who.is.here", {name!r})
    Path({there!r}, {name!r}).touch()
    while len(list(Path({there!r}).iterdir())) < 2:
        time.sleep(0.05)
    return sources["events"].where(F.lit(session.conf.get("who.is.here") == {name!r}))
"""


def test_what_one_sets_in_its_session_no_other_sees(group: Group, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    for name in ("one", "other"):
        group.copy(name, python=MEETS.format(name=name, there=str(there)))
        group.land(name, 1)
    assert {report.error for report in group.drain().values()} == {None}
    assert (group.rows("one"), group.rows("other")) == ([1], [1])


BLOCKS = """
from pathlib import Path
import time

def write(batch, token):
    batch.count()
    while not Path({go!r}).exists():
        time.sleep(0.1)
    batch.write.format("delta").mode("append").options(**token.delta_options).save({table!r})
"""
THINKS = """
import threading
from concurrent.futures import ThreadPoolExecutor

def transform(sources):
    # Not a daemon: Python's own end would wait for it.
    return ThreadPoolExecutor().submit(threading.Event().wait).result()
"""


@pytest.mark.full
def test_code_that_never_returns_ends_with_its_application_and_the_next_run_goes_on(
    tmp_path: Path, spark: SparkSession
) -> None:
    group = Group(Sandbox(tmp_path / "project", spark))
    go, table = tmp_path / "go", group.sandbox.storage / "tables" / "blocks"
    sink = "format: foreach_batch, function: sink.py"
    blocks = BLOCKS.format(go=str(go), table=str(table))
    group.copy("blocks", sink=sink, more=STUCK, sink_py=blocks)
    group.copy("thinks", python=THINKS, more=STUCK)
    group.copy("good")
    for name in group.names:
        group.land(name, 1)
        group.land(name, 2)
    with group.sandbox.metastore() as metastore:
        command = start_command(group.sandbox, ["run", *group.names])
        said, _ = command.communicate(timeout=900)
        assert command.returncode == 1, said
        states = {name: (run.state, run.error) for name in group.names for run in metastore.runs(name)}
        assert all(metastore.holder_of(name) is None for name in group.names)
    assert states["good"] == ("succeeded", None)
    for name in ("blocks", "thinks"):
        state, error = states[name]
        assert error is not None
        assert (state, error["id"]) == ("failed", "drain.stuck")
        assert f"{name}: drain.stuck" in said
    assert group.rows("good") == [1, 2]
    assert not table.exists()

    go.touch()
    group.copy("blocks", sink=sink, sink_py=blocks)
    group.names = ["blocks"]
    assert group.drain()["blocks"].error is None
    assert group.rows("blocks") == [1, 2]


@pytest.mark.full
def test_who_watches_asks_nothing_of_storage_when_it_leaves_a_run_behind(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Storage may be what the run hangs in; then who asks it hangs too, and nobody watches the others."""
    group = Group(Sandbox(tmp_path / "project", spark))
    go, table = tmp_path / "go", group.sandbox.storage / "tables" / "blocks"
    blocks = BLOCKS.format(go=str(go), table=str(table)).replace("while not", "while token.batch_id and not")
    group.copy("blocks", sink="format: foreach_batch, function: sink.py", more=STUCK, sink_py=blocks)
    group.land("blocks", 1)
    group.land("blocks", 2)
    watches, asked = threading.current_thread(), list[str]()
    for name in ("last_commit_batch", "commit"):
        real = getattr(CheckpointFiles, name)

        def noting(self: CheckpointFiles, *of: int, _real: Any = real, _name: str = name) -> Any:
            if threading.current_thread() is watches:
                asked.append(_name)
            return _real(self, *of)

        monkeypatch.setattr(CheckpointFiles, name, noting)
    try:
        report = group.drain()["blocks"]
        assert (report.error and report.error.id, group.left_behind) == ("drain.stuck", ["blocks"])
        run = group.last_run("blocks")
        assert (run.state, run.error and run.error["id"]) == ("failed", "drain.stuck")
        assert asked == []
    finally:
        go.touch()


BIG = """
import time
from pathlib import Path
from pyspark.sql import functions as F

def transform(sources):
    @F.udf("int")
    def slowly(x):
        Path({began!r}, str(x)).touch()
        if not Path({done!r}).exists():
            time.sleep(0.5)
        return x
    return sources["events"].repartition({tasks}).select(slowly("id").alias("id"))
"""
SMALL = """
import time
from pathlib import Path

def transform(sources):
    while not any(Path({began!r}).iterdir()):
        time.sleep(0.05)
    return sources["events"]
"""
TASKS = 150


@pytest.mark.full
def test_a_small_pipeline_ends_while_a_big_one_has_all_cores_to_itself(group: Group, tmp_path: Path) -> None:
    began, done = tmp_path / "began", tmp_path / "done"
    began.mkdir()
    group.copy("big", python=BIG.format(began=str(began), done=str(done), tasks=TASKS))
    group.copy("small", python=SMALL.format(began=str(began)))
    group.land("big", *range(TASKS))
    group.land("small", 1)
    tasks_begun: dict[str, int] = {}

    class Counting(Watcher):
        def finished(self, report: Report) -> None:
            tasks_begun[report.pipeline] = len(list(began.iterdir()))
            done.touch()

    reports = group.drain(Counting())
    assert [report.error for report in reports.values()] == [None, None]
    assert tasks_begun["small"] < TASKS, "it waited for the last task of the other"
    assert (len(group.rows("big")), group.rows("small")) == (TASKS, [1])


LISTENER = """
from pathlib import Path
from pyspark.sql.streaming.listener import StreamingQueryListener

class Listener(StreamingQueryListener):
    def onQueryStarted(self, event): self._note(event.name)
    def onQueryProgress(self, event): self._note(event.progress.name)
    def onQueryTerminated(self, event): pass
    def _note(self, name):
        with Path(__file__).with_name("heard").open("a") as heard:
            heard.write(name + "\\n")
"""
NEVER_DONE = """
import threading
from pyspark.sql.streaming.listener import StreamingQueryListener

class Listener(StreamingQueryListener):
    def onQueryStarted(self, event): threading.Event().wait()
    def onQueryProgress(self, event): pass
    def onQueryTerminated(self, event): pass
"""
NOT_SEVEN = """
expectations:
  - {{name: {name}, type: expect_column_values_to_not_be_in_set, kwargs: {{column: id, value_set: [7]}}}}
"""


def test_each_has_its_own_verdict_counts_progress_and_listener(group: Group) -> None:
    batches: dict[str, list[tuple[int, ...]]] = {
        "whole": [(1, 2), (3, 4), (5,)],
        "holed": [(6, 7), (8,)],
        "plain": [(9, 10, 11)],
    }
    group.copy("deaf", listener_py=NEVER_DONE)
    group.land("deaf", 1)
    for name, files in batches.items():
        group.copy(name, quality_yaml=NOT_SEVEN.format(name=f"of_{name}"), listener_py=LISTENER)
        for ids in files:
            group.land(name, *ids)
    reports = group.drain()

    errors = {name: report.error and report.error.id for name, report in reports.items()}
    assert errors == {"deaf": None, "whole": None, "holed": "audit.fail", "plain": None}
    assert (group.rows("whole"), group.rows("holed")) == ([1, 2, 3, 4, 5], [])
    for name, files in batches.items():
        run, rows = group.last_run(name), [len(ids) for ids in files]
        assert (run.batches, run.counts.read, run.counts.staged) == (len(rows), sum(rows), sum(rows))
        assert _balances(run)
        assert sum(int(entry["rows"]) for entry in run.progress) == sum(rows)
        with group.sandbox.metastore() as metastore:
            [verdict] = metastore.verdicts(name)
        assert [result["name"] for result in verdict.results] == [f"of_{name}"]
        folder = group.sandbox.root / "include" / "pipelines" / name
        assert set((folder / "heard").read_text().split()) == {name}


def test_a_stop_lets_no_batch_more_be_written_and_the_next_application_goes_on(group: Group) -> None:
    stop, after_it = threading.Event(), list[str]()
    for name in (names := ["one", "two", "three", "four", "five"]):
        group.copy(name)
        for number in range(4):
            group.land(name, number)

    class StopsAtTheFirst(Watcher):
        def batch(self, pipeline: Pipeline, batch: Batch) -> None:
            after_it.append(pipeline.name)
            stop.set()

    reports = group.drain(StopsAtTheFirst(), stop)
    # A batch that was being written comes to its end; no pipeline writes another.
    assert len(set(after_it)) == len(after_it) < len(names)
    begun = [report.run for report in reports.values() if report.run is not None]
    assert {(run.state, run.stop_reason and run.stop_reason.partition(";")[0]) for run in begun} == {
        ("stopped", "asked to stop")
    }
    assert sum(run.batches for run in begun) == len(after_it)

    assert {report.error for report in group.drain().values()} == {None}
    assert {name: group.rows(name) for name in names} == {name: [0, 1, 2, 3] for name in names}
