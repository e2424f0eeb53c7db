"""The jobs that Airflow submits to Spark: each file in a project's jobs/ only calls one of these.

    spark-submit jobs/drain.py --project FOLDER --pipeline a --pipeline b --origin '{"dag_id": ...}'
    spark-submit jobs/drain.py --project FOLDER --pipeline NAME --quarantine '{"rules": []}' --origin '{...}'
    spark-submit jobs/replay.py --project FOLDER --pipeline NAME --from TIME --to TIME --origin '{...}'
    spark-submit jobs/rebuild.py --project FOLDER --pipeline NAME --origin '{...}'

`--origin` is kept in the run records. Each ends its process with the exit code of `application.exit_code`.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from drawdown.application import SparkApplication, exit_code
from drawdown.application.log_lines import LogLines
from drawdown.credentials import collect
from drawdown.launch.job import run_job
from drawdown.launch.loss import explain_loss
from drawdown.plan.version_in_use import wanted
from drawdown.quarantine.request import ReplayRequest
from drawdown.spec import Pipeline, load_pipeline, load_project
from drawdown.values.interval import Interval
from drawdown.workspace import Workspace


def drain() -> NoReturn:
    """Drain the pipelines that the command line names in one Spark application.

    With ``--quarantine``, replay quarantined rows of the one that it names.
    """

    def work(stop: threading.Event) -> int:
        asked = _arguments(several=True)
        project = load_project(asked.project)
        pipelines = [load_pipeline(project, name) for name in asked.pipeline]
        with Workspace.open(project) as workspace:
            if (rows := asked.quarantine) is not None:
                origin = asked.origin | {key: rows[key] for key in ("by", "why") if key in rows}
                application = _application(workspace, pipelines, origin, stop)
                return exit_code([application.replay_set_aside(pipelines[0], ReplayRequest.of(rows))])
            application = _application(workspace, pipelines, asked.origin, stop)
            application.note_idle = True
            return exit_code(application.drain_all(pipelines))

    run_job(work)


def replay() -> NoReturn:
    """Replay the interval of the pipeline that the command line names."""

    def work(stop: threading.Event) -> int:
        asked = _arguments("from", "to")
        project = load_project(asked.project)
        pipeline, interval = load_pipeline(project, asked.pipeline), (vars(asked)["from"], asked.to)
        with Workspace.open(project) as workspace:
            application = _application(workspace, [pipeline], asked.origin, stop)
            return exit_code(application.replay(pipeline, [Interval.parse(*interval)]))

    run_job(work)


def rebuild() -> NoReturn:
    """Drain and compare the rebuild of the pipeline that the command line names."""

    def work(stop: threading.Event) -> int:
        asked = _arguments()
        project = load_project(asked.project)
        pipeline = wanted(project, asked.pipeline)
        with Workspace.open(project) as workspace:
            application = _application(workspace, [pipeline], asked.origin, stop)
            return exit_code([application.rebuild(pipeline)])

    run_job(work)


def _arguments(*more: str, several: bool = False) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--project", type=Path, required=True)
    parser.add_argument("--pipeline", required=True, action="append" if several else "store")
    parser.add_argument("--origin", type=json.loads, default={})
    if several:
        parser.add_argument("--quarantine", type=json.loads)
    for name in more:
        parser.add_argument(f"--{name}", required=True)
    return parser.parse_args()


def _application(
    workspace: Workspace,
    pipelines: Sequence[Pipeline],
    origin: dict[str, object],
    stop: threading.Event,
) -> SparkApplication:
    known = collect(workspace.project, pipelines)
    return SparkApplication(
        Workspace(known, workspace.metastore),
        origin=origin,
        stop=stop,
        watcher=LogLines(),
        explain_loss=explain_loss,
    )
