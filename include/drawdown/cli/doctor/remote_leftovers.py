"""Finds by their tags clusters and jobs of services whose run is over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from drawdown.cli.doctor.finding import Check
from drawdown.errors import DrawdownError
from drawdown.metastore import Metastore
from drawdown.spec import Project, RemoteCluster

_PACKAGES = {
    "dataproc": "google",
    "emr": "amazon",
    "emr-serverless": "amazon",
    "kubernetes": "cncf-kubernetes",
}
"""The provider of each kind."""

_RUNS = 1_000
_ENDING = timedelta(minutes=30)
"""Time for the task that takes the cluster down, beside that for another try."""

_WITHIN = 90
"""Seconds for all services together, the providers' imports included."""


def remote_clusters(project: Project) -> Iterator[Check]:
    """Ask the service of each profile whose driver runs elsewhere, if its provider is installed."""
    profiles = {
        name: each
        for name, each in project.clusters.items()
        if isinstance(each, RemoteCluster) and _is_installed(_PACKAGES[each.kind])
    }
    if not profiles:
        return
    with suppress(DrawdownError), Metastore.open(project.metastore_url) as metastore:
        now, ended = metastore.now(), _ended(project, metastore)
        said = set()
        for answer in _ask(project, list(profiles)):
            name = answer["profile"]
            if answer["failed"]:
                what = f"whether runs of the profile {name} have left something cannot be asked:"
                do = f"correct the Airflow connection {getattr(profiles[name], 'connection', '')}"
                yield Check("clusters", "warn", f"{what} {answer['failed']}", do)
            for each in answer["found"]:
                over = _over(now, each["deadline"], ended.get(each["run"]))
                if over and each["what"] not in said:
                    said.add(each["what"])
                    what = f"{each['what']} ({name}) of {each['run']} {over}, and may still be paid for"
                    yield Check("clusters", "warn", what, each["end"])


def _ask(project: Project, profiles: list[str]) -> list[dict[str, Any]]:
    """Return the answers of ``drawdown.airflow.remote.leftovers``."""
    from drawdown.cli.doctor.airflow_pools import database_url

    with tempfile.TemporaryDirectory() as empty:
        home = project.state_dir / "airflow"
        environment = {
            # Without a home Airflow would make one.
            "AIRFLOW_HOME": str(home) if home.is_dir() else empty,
            **os.environ,
            "_AIRFLOW_PROCESS_CONTEXT": "server",
        }
        if url := database_url(project.state_dir):
            environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = url
        command = [sys.executable, "-m", "drawdown.airflow.remote.leftovers", str(project.root), *profiles]
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=_WITHIN, check=False
            )
        except subprocess.TimeoutExpired:
            failed = f"no answer within {_WITHIN} s"
        else:
            if done.returncode == 0:
                answers: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
                return answers
            failed = (done.stderr.strip().splitlines() or ["the program that asks was killed"])[-1]
    return [{"profile": name, "found": [], "failed": failed} for name in profiles]


def _is_installed(provider: str) -> bool:
    """Look for the package without an import, which would take seconds."""
    try:
        version(f"apache-airflow-providers-{provider}")
    except PackageNotFoundError:
        return False
    return True


def _over(now: datetime, deadline: str, ended: datetime | None) -> str:
    """Return why nothing needs it any more; empty if something may."""
    from drawdown.launch.remote_requests.request import deadline_of

    until = deadline_of(deadline)
    if ended is not None and ended + _ENDING < now:
        return "has outlived its run, which is over"
    if until is not None and until < now:
        return f"is past its deadline, {until:%Y-%m-%d %H:%M} UTC"
    return ""


def _ended(project: Project, metastore: Metastore) -> dict[str, datetime]:
    """Return by name when nothing of a run was expected any more, for names of which no run is under way."""
    from drawdown.launch.loss import key_of_origin
    from drawdown.launch.remote_requests.request import name_of

    ended: dict[str, datetime] = {}
    live = set()
    for run in metastore.runs(limit=_RUNS):
        if not run.origin.get("dag_run_id"):
            continue
        name = name_of(key_of_origin(run.origin), project.storage_root)
        if run.ended_at is None:
            live.add(name)
        else:
            ended[name] = max(run.ended_at, ended.get(name, run.ended_at))
    wait = project.airflow.retry_delay.delta
    return {name: at + wait for name, at in ended.items() if name not in live}
