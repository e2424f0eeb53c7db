"""The checks of `drawdown doctor`: one function each, returning the finding and its fix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from drawdown.cli.doctor.airflow import airflow
from drawdown.cli.doctor.finding import Check
from drawdown.cli.doctor.machine import (
    archive,
    clusters,
    disk,
    interpreter,
    jars,
    java,
    launcher,
    ports,
    started_clusters,
    temporary_files,
)
from drawdown.cli.doctor.remote_leftovers import remote_clusters
from drawdown.cli.doctor.runs import metastore_and_runs
from drawdown.cli.doctor.servers import brokers, databases
from drawdown.cli.doctor.store import storage
from drawdown.errors import DrawdownError
from drawdown.spec import Project, load_project, pipeline_names
from drawdown.values.text import counted

__all__ = ["Check", "examine"]


def examine() -> list[Check]:
    """Run all checks, in the order in which a run needs them; never raises for user mistakes."""
    found = [
        finding
        for about, look in (("python", interpreter), ("java", java), ("spark", launcher), ("ports", ports))
        for finding in _careful(about, look)
    ]
    try:
        project = load_project()
    except DrawdownError as error:
        return [*found, _from_error("project", error)]
    looks: list[tuple[str, Callable[[Project], Iterator[Check]]]] = [
        ("project", _project),
        ("jars", jars),
        ("archive", archive),
        ("disk", disk),
        ("storage", storage),
        ("metastore", metastore_and_runs),
        ("clusters", clusters),
        ("clusters", started_clusters),
        ("clusters", remote_clusters),
        ("temporary", temporary_files),
        ("brokers", brokers),
        ("databases", databases),
        ("airflow", airflow),
    ]
    # In parallel: a broker that does not answer takes as long as all other checks together.
    with ThreadPoolExecutor(max_workers=len(looks)) as pool:
        answers = pool.map(lambda each: _careful(each[0], lambda: each[1](project)), looks)
        return [*found, *(finding for answer in answers for finding in answer)]


def _careful(about: str, look: Callable[[], Iterator[Check]]) -> list[Check]:
    try:
        return list(look())
    except DrawdownError as error:
        return [_from_error(about, error)]


def _from_error(about: str, error: DrawdownError) -> Check:
    where = f" ({error.where})" if error.where else ""
    return Check(about, "fail", f"{error.what}{where}", error.do)


def _project(project: Project) -> Iterator[Check]:
    count = len(pipeline_names(project))
    yield Check(
        "project", "ok", f"{project.root}, {counted(count, 'pipeline')}; `drawdown validate` checks them"
    )
