"""The job that Airflow submits: replay one interval of a pipeline, then say how it went.

    spark-submit jobs/replay.py --project FOLDER --pipeline NAME --from TIME --to TIME --origin '{...}'

`--origin` is kept in the run record. Exit code: see drawdown.application.exit_code.
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
from drawdown.spec.interval import Interval


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("project", "pipeline", "from", "to", "origin"):
        parser.add_argument(f"--{name}", required=True)
    asked, stop = vars(parser.parse_args()), Leash.from_environment().stop_requested
    try:
        project = load_project(Path(asked["project"]))
        pipeline, origin = load_pipeline(project, asked["pipeline"]), json.loads(asked["origin"])
        with Metastore.open(project.metastore_url) as metastore:
            work = Application(collect(project, [pipeline]), metastore, {}, origin, stop, LogLines())
            return exit_code(work.replay(pipeline, [Interval.parse(asked["from"], asked["to"])]))
    except DrawdownError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    finally:
        wait_until_read()


sys.exit(main())
