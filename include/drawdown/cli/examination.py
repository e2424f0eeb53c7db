"""What `drawdown doctor` looks at: one function a thing, each giving what it found and what mends it."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from drawdown.errors import DrawdownError
from drawdown.spec import Broker, Database, Project, load_project

Level = Literal["ok", "warn", "fail"]

_LITTLE_DISK = 2 * 1024**3
_BROKER_SECONDS = 1.5


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `do` is the command that mends it, empty when all is well."""

    about: str
    level: Level
    what: str
    do: str = ""

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


def examine() -> list[Finding]:
    """Everything, in the order in which a run needs it; never raises for what a user can cause."""
    found = [*_careful("java", _java), *_careful("ports", _ports)]
    try:
        project = load_project()
    except DrawdownError as error:
        return [*found, _from_error("project", error)]
    looks: list[tuple[str, Callable[[Project], Iterator[Finding]]]] = [
        ("project", _project),
        ("jars", _jars),
        ("archive", _archive),
        ("disk", _disk),
        ("storage", _storage),
        ("metastore", _metastore),
        ("brokers", _brokers),
        ("databases", _databases),
        ("airflow", _airflow),
    ]
    # At the same time: a broker that does not answer takes as long as all the rest together.
    with ThreadPoolExecutor(max_workers=len(looks)) as pool:
        answers = pool.map(lambda each: _careful(each[0], lambda: each[1](project)), looks)
        return [*found, *(finding for answer in answers for finding in answer)]


def _careful(about: str, look: Callable[[], Iterator[Finding]]) -> list[Finding]:
    try:
        return list(look())
    except DrawdownError as error:
        return [_from_error(about, error)]


def _from_error(about: str, error: DrawdownError) -> Finding:
    where = f" ({error.where})" if error.where else ""
    return Finding(about, "fail", f"{error.what}{where}", error.do)


def _java() -> Iterator[Finding]:
    from drawdown.machine.java import require_java

    java = require_java()
    yield Finding("java", "ok", f"Java {java.version} at {java.executable}")


def _ports() -> Iterator[Finding]:
    from drawdown.machine.ports import LOOPBACK, free_ports

    try:
        free_ports(2)
    except OSError as cause:
        what = f"no port can be opened on {LOOPBACK}: {cause.strerror}"
        yield Finding("ports", "fail", what, "allow this user to listen on the loopback address")
    else:
        yield Finding("ports", "ok", f"Spark and Airflow can listen on {LOOPBACK}")


def _project(project: Project) -> Iterator[Finding]:
    from drawdown.spec import pipeline_names

    count = len(pipeline_names(project))
    yield Finding("project", "ok", f"{project.root}, {count} pipeline(s); `drawdown validate` checks them")


def _jars(project: Project) -> Iterator[Finding]:
    from drawdown.machine.home import machine_root
    from drawdown.machine.jars import CONNECTORS, check_jars, read_lock

    state_dir = machine_root(project.root) / ".drawdown"
    missing = check_jars(state_dir, [jar for jar in read_lock() if jar.folder == CONNECTORS])
    if missing:
        yield Finding(
            "jars", "fail", f"{len(missing)} connector jar(s) are not in {state_dir}", _setup(project)
        )
    else:
        yield Finding("jars", "ok", f"connectors in {state_dir / CONNECTORS}, checksums right")


def _archive(project: Project) -> Iterator[Finding]:
    from drawdown.machine.archive import archive_path
    from drawdown.machine.home import machine_root

    root = machine_root(project.root)
    if archive_path(root) is None:
        what = "no class archive: Spark starts some seconds slower"
        yield Finding("archive", "warn", what, _setup(project))
    else:
        yield Finding("archive", "ok", "class archive of the driver is there")


def _disk(project: Project) -> Iterator[Finding]:
    free = shutil.disk_usage(project.root).free
    text = f"{free / 1024**3:,.1f} GiB free at {project.root}"
    if free < _LITTLE_DISK:
        yield Finding("disk", "warn", text, "free some space: state, staged files and logs need it")
    else:
        yield Finding("disk", "ok", text)


def _storage(project: Project) -> Iterator[Finding]:
    from drawdown.storage import Storage

    storage = Storage(project.storage_root)
    probe = f"_drawdown/doctor-{uuid.uuid4().hex}"
    try:
        storage.write_atomic(probe, b"")
        storage.delete(probe)
    except OSError as cause:
        yield Finding(
            "storage",
            "fail",
            f"{storage.root} cannot be written: {cause.strerror}",
            "give this user the right to",
        )
    else:
        yield Finding("storage", "ok", f"{storage.root} can be written")


def _metastore(project: Project) -> Iterator[Finding]:
    from drawdown.metastore import Metastore
    from drawdown.spec import pipeline_names

    with Metastore.open(project.metastore_url) as metastore:
        yield Finding("metastore", "ok", "can be reached, and has this program's schema")
        for name in pipeline_names(project):
            held = metastore.holder_of(name)
            if held is not None:
                until = f"{held.expires_at:%H:%M:%S} UTC"
                yield Finding("leases", "ok", f"{name} is held by {held.holder} until {until}")


def _brokers(project: Project) -> Iterator[Finding]:
    with ThreadPoolExecutor(max_workers=8) as pool:
        yield from pool.map(lambda item: _broker(*item), project.brokers.items())


def _broker(name: str, broker: Broker) -> Finding:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    from drawdown.plan.kafka_client import client_config

    if broker.connection is not None:
        return Finding("broker", "ok", f"{name}: its login is in Airflow; not asked")
    try:
        AdminClient(client_config(broker)).list_topics(timeout=_BROKER_SECONDS)
    except KafkaException as cause:
        what = f"{name} at {broker.bootstrap_servers} does not answer: {cause.args[0].str()}"
        return Finding(
            "broker", "warn", what, "start it (`make up` starts a local one) or correct `brokers:`"
        )
    return Finding("broker", "ok", f"{name} at {broker.bootstrap_servers} answers")


def _databases(project: Project) -> Iterator[Finding]:
    with ThreadPoolExecutor(max_workers=8) as pool:
        yield from pool.map(lambda item: _database(*item), project.databases.items())


def _database(name: str, database: Database) -> Finding:
    from drawdown.publishing.postgres_database import connected

    if database.connection is not None:
        return Finding("database", "ok", f"{name}: its login is in Airflow; not asked")
    try:
        with connected(database, name, seconds=2) as connection:
            version = connection.info.server_version // 10000
    except DrawdownError as error:
        return Finding("database", "warn", f"{name} at {database.address}: {error.what}", error.do)
    return Finding("database", "ok", f"{name} at {database.address} answers: PostgreSQL {version}")


def _airflow(project: Project) -> Iterator[Finding]:
    """Found without importing it, which takes seconds."""
    for package in ("airflow", "airflow.providers.apache.spark"):
        try:
            there = find_spec(package) is not None
        except ModuleNotFoundError:
            there = False
        if not there:
            yield Finding("airflow", "fail", f"the package {package} is not installed", _setup(project))
            return
    yield Finding("airflow", "ok", f"apache-airflow {version('apache-airflow')}")
    yield _pool(project)


def _pool(project: Project) -> Finding:
    """The pool of the tasks: one that waits for a pool that is not there is never scheduled."""
    from drawdown.machine.airflow_pools import database_url, pool_slots

    pool = project.airflow.pool
    url = database_url(project.state_dir)
    if url is None:
        return Finding("pool", "warn", "this machine knows no Airflow database, so no pool either", "make up")
    slots = pool_slots(url, pool)
    if slots is None:
        what = f"Airflow has no pool {pool!r}: its tasks would wait for ever"
        return Finding("pool", "fail", what, f"airflow pools set {pool} 1 'Spark applications at once'")
    return Finding("pool", "ok", f"{pool}: {slots} Spark application(s) at once")


def _setup(project: Project) -> str:
    """The command that fetches what the machine lacks, wherever it was called from."""
    from drawdown.machine.home import machine_root

    root = machine_root(project.root)
    return "make setup" if root == Path.cwd() else f"make -C {root} setup"
