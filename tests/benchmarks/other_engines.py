"""A large windowed backlog beside what else computes the same table: warm Spark, DuckDB, spark-pipelines.

    python -m tests.benchmarks.other_engines [ROWS]

Warm Spark is one batch query in a session that runs already, so it is beside our query alone; the others are
whole processes. None of them keeps state for the next run but spark-pipelines, none audits or counts.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from pyspark.sql import SparkSession

from tests.benchmarks.comparison import PAIRS, Comparison
from tests.benchmarks.contest import TUNED, Contest
from tests.benchmarks.large_runs import MAX_FILES, MEMORY, ROWS, write_events
from tests.benchmarks.page import present
from tests.benchmarks.queries.windowed import transform
from tests.benchmarks.usage import used_by
from tests.support.spark import start_session

WARM, DUCKDB, DECLARED = "a warm Spark batch", "DuckDB", "spark-pipelines, into parquet"
JOB = "windowed.py"
DUCK = """
import duckdb, sys
duckdb.sql(f\"\"\"
COPY (SELECT time_bucket(INTERVAL 1 HOUR, "at") AS hour, k, count(*) AS n, sum(v) AS v
      FROM read_parquet('{sys.argv[1]}/*.parquet') GROUP BY ALL) TO '{sys.argv[2]}' (FORMAT parquet)
\"\"\")
"""
PIPELINES = """
name: windowed
storage: {storage}
libraries: [{{glob: {{include: {job}}}}}]
configuration:
  drawdown.benchmark.landing: {landing}
  spark.sql.shuffle.partitions: "2"
"""


def main(rows: int) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        events = folder / "events"
        write_events(events, rows)
        warm = start_session()
        taken: dict[str, list[float]] = defaultdict(list)
        for turn in range(PAIRS + 1):
            once = folder / f"turn{turn}"
            once.mkdir()
            of_turn = {
                **_ours(once, events),
                WARM: _warm(warm, once, events),
                DUCKDB: _duckdb(once, events),
                DECLARED: _pipelines(once, events),
            }
            shutil.rmtree(once)
            for who, seconds in of_turn.items():
                if turn:  # the first warms the machine's caches
                    taken[who].append(seconds)
        warm.stop()
    what = f"windowed, {rows:,} rows"
    return present(
        "other_engines",
        [
            Comparison(f"{what}: query alone", WARM, "s", taken["our query"], taken[WARM]),
            Comparison(f"{what}: whole process", DUCKDB, "s", taken["our process"], taken[DUCKDB]),
            Comparison(f"{what}: whole process", DECLARED, "s", taken["our process"], taken[DECLARED]),
        ],
    )


def _ours(folder: Path, events: Path) -> dict[str, float]:
    contest = Contest(folder, "windowed", "parquet", max_files=MAX_FILES, memory=MEMORY, settings=TUNED)
    contest.land_all(events)
    used = contest.ours()
    return {"our process": used.seconds, "our query": contest.seconds_of_our_query()}


def _warm(spark: SparkSession, folder: Path, events: Path) -> float:
    begun = time.monotonic()
    table = transform({"events": spark.read.parquet(str(events))})
    table.write.format("delta").save(str(folder / "warm"))
    return time.monotonic() - begun


def _duckdb(folder: Path, events: Path) -> float:
    return used_by([sys.executable, "-c", DUCK, str(events), str(folder / "duck.parquet")], folder).seconds


def _pipelines(folder: Path, events: Path) -> float:
    project = folder / "pipelines"
    shutil.copytree(Path(__file__).parent / "queries", project / "queries")
    shutil.copy(Path(__file__).with_name("pipelines_job.py"), project / JOB)
    text = PIPELINES.format(storage=f"file://{project}/storage", job=JOB, landing=events)
    (project / "spark-pipeline.yml").write_text(text)
    command = [str(Path(sys.executable).with_name("spark-pipelines")), "run"]
    settings = {"PYSPARK_PYTHON": sys.executable, "SPARK_SUBMIT_OPTS": f"-Xmx{MEMORY}"}
    return used_by(command, project, settings).seconds


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS))
