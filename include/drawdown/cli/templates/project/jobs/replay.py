"""The job that Airflow submits: replay one interval of a pipeline, then say how it went.

    spark-submit jobs/replay.py --project FOLDER --pipeline NAME --from TIME --to TIME --origin '{...}'

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
from drawdown.reporting import LogLines
from drawdown.spec import load_pipeline, load_project
from drawdown.spec.interval import Interval


def replay(stop: threading.Event) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("project", "pipeline", "from", "to", "origin"):
        parser.add_argument(f"--{name}", required=True)
    asked = vars(parser.parse_args())
    project = load_project(Path(asked["project"]))
    pipeline, origin = load_pipeline(project, asked["pipeline"]), json.loads(asked["origin"])
    with Metastore.open(project.metastore_url) as metastore:
        work = Application(collect(project, [pipeline]), metastore, {}, origin, stop, LogLines())
        return exit_code(work.replay(pipeline, [Interval.parse(asked["from"], asked["to"])]))


run_job(replay)
