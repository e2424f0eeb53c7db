"""Checks Airflow without importing it, because the import takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec

from drawdown.cli.doctor.commands import make_airflow, setup
from drawdown.cli.doctor.finding import Check
from drawdown.errors import DrawdownError
from drawdown.spec import ConnectionCluster, Pipeline, Project, iter_pipelines
from drawdown.values.text import counted

_LOGIN = "--conn-login ... --conn-password ..."


def airflow(project: Project) -> Iterator[Check]:
    for package in ("airflow", "airflow.providers.apache.spark"):
        try:
            there = find_spec(package) is not None
        except ModuleNotFoundError:
            there = False
        if not there:
            yield Check("airflow", "fail", f"the package {package} is not installed", setup(project))
            return
    yield Check("airflow", "ok", f"apache-airflow {version('apache-airflow')}")
    yield _pool(project)
    yield from paused(project)
    yield from _connections(project)


def _pool(project: Project) -> Check:
    """Check the tasks' pool: a task whose pool does not exist is never scheduled."""
    from drawdown.cli.doctor.airflow_pools import database_url, pool_slots

    pool = project.airflow.pool
    url = database_url(project.state_dir)
    if url is None:
        what = "this machine has no Airflow database, so the pool cannot be checked"
        return Check("pool", "warn", what, make_airflow(project))
    slots = pool_slots(url, pool)
    if slots is None:
        what = f"Airflow has no pool {pool!r}: its tasks would wait forever"
        return Check("pool", "fail", what, f"airflow pools set {pool} 1 'Spark applications at once'")
    return Check("pool", "ok", f"{pool}: {counted(slots, 'Spark application')} at once")


def paused(project: Project) -> Iterator[Check]:
    """Check that DAGs with a schedule are switched on: Airflow pauses a new one without a word."""
    from drawdown.cli.doctor.airflow_pools import database_url, is_paused

    url = database_url(project.state_dir)
    if url is None:
        return
    scheduled = {each.group or each.name for each in _readable(project) if each.schedule is not None}
    for dag_id in sorted(scheduled):
        if is_paused(url, dag_id):
            yield Check(
                "dag", "warn", f"{dag_id} is paused: nothing runs it", f"airflow dags unpause {dag_id}"
            )


def _readable(project: Project) -> Iterator[Pipeline]:
    for each in iter_pipelines(project):
        if not isinstance(each, DrawdownError):
            yield each


def _connections(project: Project) -> Iterator[Check]:
    """Check the connections with logins for brokers and databases, and with masters for clusters."""
    from drawdown.cli.doctor.airflow_connections import has_connection
    from drawdown.cli.doctor.airflow_pools import database_url

    url = database_url(project.state_dir)
    for each in _wanted(project):
        if not has_connection(url, each.connection):
            sentence = (
                f"{each.what} from the connection {each.connection!r}, which does not exist in this Airflow"
            )
            do = f"airflow connections add {each.connection} --conn-type {each.type} {each.options}"
            yield Check("connection", "warn", sentence, do)


@dataclass(frozen=True)
class _Wanted:
    """A connection of Airflow: what takes what from it, its type, and options of the command that adds it."""

    what: str
    connection: str
    type: str
    options: str


def _wanted(project: Project) -> Iterator[_Wanted]:
    for kind, servers in (("kafka", project.brokers), ("postgres", project.databases)):
        for name, server in servers.items():
            if server.connection is not None:
                yield _Wanted(f"{name} takes its login", server.connection, kind, _LOGIN)
    for name, profile in project.clusters.items():
        if isinstance(profile, ConnectionCluster):
            master = "--conn-host spark://HOST --conn-port 7077"
            what = f"the cluster profile {name} takes its master"
            yield _Wanted(what, profile.connection, "spark", master)
