"""The job that Airflow submits: drain pipelines in one Spark application, then say how it went.

    spark-submit jobs/drain.py --project FOLDER --pipeline a --pipeline b --origin '{"dag_id": ...}'

`--origin` is kept in the run records. Exit code: see drawdown.application.exit_code.
"""

import argparse
import json
import threading
from pathlib import Path

from drawdown.application import Application, exit_code
from drawdown.clusters.job import run_job
from drawdown.credentials import collect
from drawdown.metastore import Metastore
from drawdown.reporting import LogLines
from drawdown.spec import load_pipeline, load_project


def drain(stop: threading.Event) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--project", type=Path, required=True)
    parser.add_argument("--pipeline", action="append", required=True)
    parser.add_argument("--origin", type=json.loads, default={})
    asked = parser.parse_args()
    project = load_project(asked.project)
    pipelines = [load_pipeline(project, name) for name in asked.pipeline]
    with Metastore.open(project.metastore_url) as metastore:
        work = Application(collect(project, pipelines), metastore, origin=asked.origin, stop=stop)
        work.note_idle, work.watcher = True, LogLines()
        return exit_code(work.drain_all(pipelines))


run_job(drain)
