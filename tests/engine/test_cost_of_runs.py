"""What real applications are charged with, beside what the kernel and Spark themselves say of them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from drawdown.cost.charges import charges
from drawdown.cost.report import by_pipeline, total
from drawdown.launch.local import submit_conf
from drawdown.metastore.records import ApplicationRecord
from drawdown.spark.task_times import TaskTimes, charged_to
from tests.support.command_line import answer, drawdown
from tests.support.sandbox import Sandbox
from tests.support.spark import ROOT

SPEC = """
sources:
  events: {format: json, path: landing/NAME, schema: events.ddl}
transform: transform.sql
sink: {format: delta, path: tables/NAME, schema: events.ddl}
state: {partitions: 2}
"""
PRICED = """
clusters:
  local: {master: "local[2]", driver_memory: 1g, price: {currency: EUR, core_hour: 0.04, gb_hour: 0.005}}
"""
DAY = timedelta(days=1)
SHARE_OF_ALL = 0.75
"""The job's JVM and Python end after they were read for the last time, and the wrapper is not the job's."""


def pipelines(sandbox: Sandbox, *names: str) -> None:
    for name in names:
        sandbox.pipeline(
            name, SPEC.replace("NAME", name), events_ddl="id BIGINT", transform_sql="SELECT id FROM events"
        )
        sandbox.land_json(f"landing/{name}/a.json", [{"id": 1}, {"id": 2}])


def applications(sandbox: Sandbox) -> list[ApplicationRecord]:
    """Oldest first."""
    with sandbox.metastore() as metastore:
        found, _ = metastore.applications.since(metastore.now() - DAY)
    return sorted(found, key=lambda each: each.started_at)


def usage(sandbox: Sandbox, pipeline: str) -> Mapping[str, Any]:
    with sandbox.metastore() as metastore:
        [run] = metastore.runs(pipeline, limit=1)
    assert run.usage is not None
    return run.usage


def adds_up(sandbox: Sandbox) -> None:
    """Pipelines, and applications, come to the same."""
    with sandbox.metastore() as metastore:
        now = metastore.now()
        known, runs = metastore.applications.since(now - DAY)
    bill = total(each.bill for each in by_pipeline(charges(known, runs), now - DAY, now, {}, {}))
    ends = [(each, (each.ended_at or each.seen_at) - each.started_at) for each in known]
    assert bill.core_us == sum(each.cores * (took // timedelta(microseconds=1)) for each, took in ends)
    assert bill.cpu_us == sum(each.cpu_us or 0 for each in known)


def submitted(sandbox: Sandbox, *names: str) -> tuple[float, float]:
    """Wall and processor seconds of spark-submit behind its wrapper, by the kernel (wait4)."""
    conf = submit_conf(sandbox.project, sandbox.project.clusters["local"])
    words = [sys.executable, "-m", "drawdown.launch.submit", "--master", conf.pop("spark.master")]
    words += [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    words += [str(ROOT / "jobs" / "drain.py"), "--project", str(sandbox.root)]
    words += [word for name in names for word in ("--pipeline", name)]
    begun = time.monotonic()
    job = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(job.pid, 0)
    job.returncode = os.waitstatus_to_exitcode(status)
    assert job.returncode == 0
    return time.monotonic() - begun, used.ru_utime + used.ru_stime


@pytest.mark.full
def test_a_group_that_was_submitted_is_charged_with_what_the_kernel_counted(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path / "project", more=PRICED)
    pipelines(sandbox, "sales", "returns")
    wall, cpu = submitted(sandbox, "sales", "returns")

    [found] = applications(sandbox)
    assert found.ended_at is not None
    assert found.cpu_us is not None
    assert SHARE_OF_ALL * cpu < found.cpu_us / 1e6 <= cpu
    shares = [usage(sandbox, name) for name in ("sales", "returns")]
    assert sum(share["us"] for share in shares) <= wall * 1e6
    assert sum(share["cpu_us"] for share in shares) == found.cpu_us
    # A JVM of 1 GB of heap, and Python: less than twice that, and more than either could do without.
    assert found.peak_bytes is not None
    assert 200 * 2**20 < found.peak_bytes < 2 * 2**30
    # Spark starts before the first run does: both waited for it.
    assert found.start_us is not None
    assert found.idle_us is not None
    assert 0 < found.start_us <= found.idle_us
    assert abs(shares[0]["idle_us"] - shares[1]["idle_us"]) <= 1
    assert found.price == {"currency": "EUR", "core_hour": "0.04", "gb_hour": "0.005"}
    adds_up(sandbox)

    shown = answer(drawdown(sandbox.root, "cost", "--json").stdout)
    assert [each["pipeline"] for each in shown["pipelines"]] == ["returns", "sales"]
    hours = (found.ended_at - found.started_at) / timedelta(hours=1)
    assert shown["total"]["core_hours_asked"] == round(2 * hours, 9)
    assert abs(shown["total"]["money"]["EUR"] - hours * (2 * 0.04 + 0.005)) < 1e-8
    by_day = answer(drawdown(sandbox.root, "cost", "sales", "--by", "day", "--json").stdout)
    assert by_day["total"] == {
        key: value for key, value in shown["pipelines"][1].items() if key in by_day["total"]
    }
    said = drawdown(sandbox.root, "cost").stdout
    assert "EUR" in said
    assert "sales: break-even schedule: n/a (1 of 10 runs with data needed)" in said
    text = drawdown(sandbox.root, "runs", "--prometheus").stdout
    assert 'drawdown_run_core_seconds{pipeline="sales",of="used"}' in text
    assert 'drawdown_run_cost{pipeline="sales",currency="EUR"}' in text
    unknown = drawdown(sandbox.root, "cost", "salse")
    assert (unknown.returncode, "did you mean 'sales'" in unknown.stderr) == (2, True)


def test_tasks_are_those_of_the_run_whose_thread_asked_for_them(spark: SparkSession, tmp_path: Path) -> None:
    assert TaskTimes(spark).read() == {}, "another application of this process, which did nothing"
    spark.range(10).count()  # what a first job compiles is not what the light run asked for
    tasks = TaskTimes(spark)
    last = spark.sparkContext._jsc.sc().statusStore()
    before = _newest_job(last)
    spark.range(1_000).write.parquet(str(tmp_path / "in"))
    with charged_to(spark, "light"):
        spark.range(10).count()
    with charged_to(spark, "streamed"):
        stream = spark.readStream.schema("id BIGINT").parquet(str(tmp_path / "in")).writeStream
        stream = stream.foreachBatch(lambda rows, _: rows.selectExpr("sum(hash(id))").collect())  # type: ignore[union-attr]
        stream = stream.option("checkpointLocation", str(tmp_path / "at")).trigger(availableNow=True)
        stream.start().awaitTermination()
    with charged_to(spark, "heavy"):
        spark.range(20_000_000).selectExpr("sum(hash(id, id + 1))").collect()
    found = tasks.read()

    assert found.keys() == {"", "light", "streamed", "heavy"}
    assert found["heavy"] > 5 * found["light"] > 0
    of_all = sum(stage.executorCpuTime() for stage in _stages(last, behind=before))
    assert abs(sum(found.values()) - of_all / 1_000) <= len(found)


def _newest_job(store: Any) -> int:
    return max((job.jobId() for job in _jobs(store)), default=-1)


def _stages(store: Any, behind: int) -> list[Any]:
    """What Spark's own page shows of each stage that ran in later jobs: it forgets the oldest of 1,000."""
    jobs = [job.stageIds() for job in _jobs(store) if job.jobId() > behind]
    ids = {stages.apply(place) for stages in jobs for place in range(stages.size())}
    stages = [store.lastStageAttempt(stage) for stage in ids]
    return [stage for stage in stages if stage.numCompleteTasks()]


def _jobs(store: Any) -> list[Any]:
    found = store.jobsList(None)
    return [found.apply(place) for place in range(found.size())]
