"""The job that Airflow submits: drain pipelines in one Spark application, then say how it went.

    spark-submit jobs/drain.py --project FOLDER --pipeline a --pipeline b --origin '{"dag_id": ...}'

`--origin` is kept in the run records. Exit code: see drawdown.application.exit_code.
"""

import argparse
import json
import sys
from pathlib import Path

from drawdown.application import Application, exit_code
from drawdown.clusters.driver_output import wait_until_read
from drawdown.credentials import collect
from drawdown.errors import DrawdownError
from drawdown.leash import Leash
from drawdown.metastore import Metastore
from drawdown.reporting import LogLines
from drawdown.spec import load_pipeline, load_project


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--project", type=Path, required=True)
    parser.add_argument("--pipeline", action="append", required=True)
    parser.add_argument("--origin", type=json.loads, default={})
    asked, stop = parser.parse_args(), Leash.from_environment().stop_requested
    try:
        project = load_project(asked.project)
        pipelines = [load_pipeline(project, name) for name in asked.pipeline]
        driven = collect(project, pipelines)
        with Metastore.open(project.metastore_url) as metastore:
            work = Application(driven, metastore, origin=asked.origin, stop=stop, note_idle=True)
            work.watcher = LogLines()
            return exit_code(work.drain_all(pipelines))
    except DrawdownError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    finally:
        wait_until_read()


sys.exit(main())
