"""The job that Airflow submits: drain a rebuild of a pipeline and compare it, then say how it went.

    spark-submit jobs/rebuild.py --project FOLDER --pipeline NAME --origin '{...}'

`--origin` is kept in the run record. Exit code: see drawdown.application.exit_code.
"""

import argparse
import json
import threading
from pathlib import Path

from drawdown.application import Application, exit_code
from drawdown.clusters.job import run_job
from drawdown.credentials import collect
from drawdown.metastore import Metastore
from drawdown.plan.rebuild import wanted
from drawdown.reporting import LogLines
from drawdown.spec import load_project


def rebuild(stop: threading.Event) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("project", "pipeline", "origin"):
        parser.add_argument(f"--{name}", required=True)
    asked = parser.parse_args()
    project = load_project(Path(asked.project))
    pipeline, origin = wanted(project, asked.pipeline), json.loads(asked.origin)
    with Metastore.open(project.metastore_url) as metastore:
        work = Application(collect(project, [pipeline]), metastore, {}, origin, stop, LogLines())
        return exit_code([work.rebuild(pipeline)])


run_job(rebuild)
