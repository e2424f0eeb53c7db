"""Parse of a DAG folder of 100, 300 and 1,000 pipelines, plain and mixed, beside a file of as many by hand.

python -m tests.benchmarks.parse
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.comparison import Comparison, in_turns
from tests.benchmarks.page import present
from tests.support.spark import ROOT

RIVAL = "a DAG file written by hand"

# Airflow itself is imported before the clock starts: its dag processor has it loaded already.
PARSE = """
import json, resource, runpy, sys, time
from airflow.sdk import DAG
import drawdown.airflow.factory
begun, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
found = runpy.run_path(sys.argv[1])
took, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF)
heavy = [name for name in ("pyspark", "great_expectations", "delta") if name in sys.modules]
print(json.dumps({
    "dags": sum(isinstance(each, DAG) for each in found.values()),
    "tasks": sum(len(each.tasks) for each in found.values() if isinstance(each, DAG)),
    "seconds": took,
    "cpu": after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime,
    "heavy": heavy,
}))
"""
BY_HAND = """
from datetime import timedelta
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.operators.python import PythonOperator, ShortCircuitOperator
from airflow.sdk import DAG, Asset
def work(**context): pass
for number in range(PIPELINES):
    name = f"flights_{number}"
    with DAG(name, schedule=f"{number % 60} * * * *", catchup=False, max_active_runs=1) as dag:
        new = ShortCircuitOperator(task_id="preflight", python_callable=work)
        drain = SparkSubmitOperator(
            task_id="drain", application="jobs/drain.py", conn_id="spark_default",
            conf={"spark.master": "local[2]", "spark.driver.memory": "1g"},
            application_args=["--pipeline", name], retries=2, retry_delay=timedelta(minutes=1),
        )
        audit = PythonOperator(task_id="audit", python_callable=work)
        publish = PythonOperator(task_id="publish", python_callable=work, outlets=[Asset(f"delta://{name}")])
        fresh = PythonOperator(task_id="freshness", python_callable=work)
        new >> drain >> audit >> publish >> fresh
    globals()[name] = dag
"""


def make_project(folder: Path, pipelines: int, *, mixed: bool = False) -> Path:
    """Copies of an example with rules, expectations and a watermark; returns its DAG file.

    Mixed, of every ten pipelines three share a group, two can be replayed, and three read another's table.
    """
    (folder / "dags").mkdir(parents=True)
    shutil.copy(ROOT / "dags" / "drawdown.py", folder / "dags")
    into = folder / "include" / "pipelines"
    into.mkdir(parents=True)
    shutil.copy(ROOT / "include" / "project.yaml", folder / "include")
    example = ROOT / "include" / "pipelines" / "flights"
    spec = (example / "pipeline.yaml").read_text().replace("group: nycflights", "# group: none")
    for number in range(pipelines):
        copy = into / f"flights_{number}"
        shutil.copytree(example, copy, ignore=shutil.ignore_patterns("tests"))
        own = spec.replace("tables/flights", f"tables/flights_{number}").replace(
            "schedule: null", f'schedule: "{number % 60} * * * *"'
        )
        (copy / "pipeline.yaml").write_text(_varied(own, number) if mixed else own)
    return folder / "dags" / "drawdown.py"


def _varied(spec: str, number: int) -> str:
    path = f"  path: tables/flights_{number}\n"
    varied = spec.replace(path, f"{path}  table: flights_{number}\n")
    place = number % 10
    if place in (1, 2, 3):  # A group has one schedule.
        varied = varied.replace("# group: none", f"group: group_{number // 10}")
        varied = varied.replace(f'schedule: "{number % 60} * * * *"', 'schedule: "@hourly"')
    elif place in (4, 5):
        varied += "\nreplay: {interval: 1 day, lookback: 6 hours, lookahead: 6 hours}\n"
    elif place in (6, 7, 8):
        read, kept = varied.index("    format: csv"), varied.index("    # A departure")
        varied = f"{varied[:read]}    format: table\n    table: flights_{number - 6}\n{varied[kept:]}"
    return varied


def parsed(dag_file: Path) -> dict[str, float]:
    """In a process of its own: DAGs, tasks, seconds, processor seconds, and heavy packages it needed."""
    done = subprocess.run(
        [sys.executable, "-c", PARSE, str(dag_file)],
        env={**os.environ, "AIRFLOW_HOME": str(dag_file.parents[1] / "airflow")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    found = []
    with tempfile.TemporaryDirectory() as name:
        for pipelines, mixed in ((100, False), (300, False), (1_000, False), (1_000, True)):
            what = f"{pipelines:,} pipelines" + ", with groups, replays and tables that others read" * mixed
            ours = make_project(Path(name) / f"ours{pipelines}{mixed}", pipelines, mixed=mixed)
            rival = Path(name) / f"rival{pipelines}" / "dags" / "by_hand.py"
            rival.parent.mkdir(parents=True, exist_ok=True)
            rival.write_text(BY_HAND.replace("PIPELINES", str(pipelines)))
            pairs = in_turns(
                lambda _, file=ours: parsed(file)["seconds"],  # type: ignore[misc]
                lambda _, file=rival: parsed(file)["seconds"],  # type: ignore[misc]
            )
            figures = ([pair[way] for pair in pairs] for way in (0, 1))
            found.append(Comparison(what, RIVAL, "s", *figures))
    return present("parse", found)


if __name__ == "__main__":
    sys.exit(main())
