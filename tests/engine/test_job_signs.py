"""Whether Spark goes on with a run is seen by all its jobs, not by the newest."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.spark.job_groups import job_signs

RUN = "run-of-two-jobs"
PATIENCE = 20.0


def _until(there: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)


class Jobs:
    """An older job of tasks that follow each other and a newer one that hangs, each in its thread."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.context, self.folder = spark.sparkContext, folder
        self.threads: list[threading.Thread] = []

    def begin(self, name: str, tasks: int, group: str | None) -> None:
        """Returns when its first task runs; task n ends once there is a file `name-n`."""
        folder = str(self.folder)

        def task(number: int) -> Callable[[object], tuple[int, int]]:
            def waits(_: object) -> tuple[int, int]:
                Path(folder, f"{name}-began").touch()
                while not Path(folder, f"{name}-{number}").exists():
                    time.sleep(0.05)
                return number, number

            return waits

        def work() -> None:
            if group is not None:
                self.context.setJobGroup(group, name)
            # Stages of one task each: the job has one core, whatever it has before it.
            rows = self.context.parallelize([0], 1).map(task(0))
            for number in range(1, tasks):
                rows = rows.reduceByKey(max, 1).map(task(number))
            rows.collect()

        self.threads.append(threading.Thread(target=work))
        self.threads[-1].start()
        _until((self.folder / f"{name}-began").exists)

    def end(self, name: str, *tasks: int) -> None:
        for number in tasks:
            (self.folder / f"{name}-{number}").touch()


@pytest.fixture
def jobs(spark: SparkSession, tmp_path: Path) -> Iterator[Jobs]:
    jobs = Jobs(spark, tmp_path)
    yield jobs
    jobs.end("older", *range(5))
    jobs.end("newer", 0)
    for thread in jobs.threads:
        thread.join(PATIENCE)


@pytest.mark.parametrize("group", [RUN, None], ids=["of the run", "of the user's threads"])
def test_tasks_of_an_older_job_are_signs_while_the_newest_hangs(
    spark: SparkSession, jobs: Jobs, group: str | None
) -> None:
    jobs.begin("older", 5, group)
    jobs.begin("newer", 1, group)
    for number in range(3):
        seen = job_signs(spark, [RUN])
        jobs.end("older", number)
        _until(lambda seen=seen: job_signs(spark, [RUN]) != seen)


def test_jobs_that_hang_give_no_sign_whatever_another_run_does(spark: SparkSession, jobs: Jobs) -> None:
    jobs.begin("newer", 1, RUN)
    seen = job_signs(spark, [RUN])
    jobs.begin("older", 5, "another-run")
    jobs.end("older", *range(5))
    jobs.threads[-1].join(PATIENCE)
    assert job_signs(spark, [RUN]) == seen
    jobs.end("newer", 0)
    jobs.threads[0].join(PATIENCE)
    _until(lambda: job_signs(spark, [RUN]) != seen)
