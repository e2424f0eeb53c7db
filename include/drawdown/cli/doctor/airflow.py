"""What `drawdown doctor` sees of Airflow, found without importing it, which takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec

from drawdown.cli.doctor.commands import setup
from drawdown.cli.doctor.finding import Check
from drawdown.spec import ConnectionCluster, Project

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
    yield from _connections(project)


def _pool(project: Project) -> Check:
    """The pool of the tasks: one that waits for a pool that is not there is never scheduled."""
    from drawdown.cli.doctor.airflow_pools import database_url, pool_slots

    pool = project.airflow.pool
    url = database_url(project.state_dir)
    if url is None:
        return Check("pool", "warn", "this machine knows no Airflow database, so no pool either", "make up")
    slots = pool_slots(url, pool)
    if slots is None:
        what = f"Airflow has no pool {pool!r}: its tasks would wait forever"
        return Check("pool", "fail", what, f"airflow pools set {pool} 1 'Spark applications at once'")
    return Check("pool", "ok", f"{pool}: {slots} Spark application(s) at once")


def _connections(project: Project) -> Iterator[Check]:
    """Those that brokers and databases take their logins from, and clusters their masters."""
    from drawdown.cli.doctor.airflow_connections import has_connection
    from drawdown.cli.doctor.airflow_pools import database_url

    url = database_url(project.state_dir)
    for what, connection, kind, asks in _wanted(project):
        if not has_connection(url, connection):
            sentence = f"{what} from the connection {connection!r}, which Airflow does not have here"
            do = f"airflow connections add {connection} --conn-type {kind} {asks}"
            yield Check("connection", "warn", sentence, do)


def _wanted(project: Project) -> Iterator[tuple[str, str, str, str]]:
    """Who takes what, from which connection, its type, and what else it has to say."""
    for kind, servers in (("kafka", project.brokers), ("postgres", project.databases)):
        for name, server in servers.items():
            if server.connection is not None:
                yield f"{name} takes its login", server.connection, kind, _LOGIN
    for name, profile in project.clusters.items():
        if isinstance(profile, ConnectionCluster):
            master = "--conn-host spark://HOST --conn-port 7077"
            yield f"the cluster profile {name} takes its master", profile.connection, "spark", master
