"""Where the log of a run is, and its lines: the log of a task of Airflow, or a part of Spark's log."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from drawdown.metastore.records import Run
from drawdown.spec import Project

_STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?= )")
"""By spark/log4j2.properties, in UTC."""
_AROUND = timedelta(seconds=2)
"""Spark's stamps are whole seconds, and its last words come after the run's record is closed."""


@dataclass(frozen=True)
class RunLog:
    """The log of one run.

    Attributes:
        path: of the file, which may be on another machine.
        url: of Airflow's page of the task; "" for a run of a command.
    """

    run: Run
    path: Path
    url: str

    def lines(self) -> Iterator[str]:
        """Yield its lines as far as they are on this machine."""
        if self.url:
            yield from map(_event, _read(self.path))
        else:
            yield from _between(_read(_older(self.path), self.path), self.run)

    @property
    def is_here(self) -> bool:
        return self.path.is_file() or (not self.url and _older(self.path).is_file())


def find_log(project: Project, run: Run, environ: Mapping[str, str] = os.environ) -> RunLog:
    """Return the log of a run, by who asked for it."""
    asked = run.origin
    if "task_id" not in asked:
        return RunLog(run, project.state_dir / "logs" / "spark.log", "")
    home = Path(environ.get("AIRFLOW_HOME") or project.state_dir / "airflow")
    folder = Path(environ.get("AIRFLOW__LOGGING__BASE_LOG_FOLDER") or home / "logs")
    dag, dag_run, task = (str(asked[key]) for key in ("dag_id", "dag_run_id", "task_id"))
    path = folder / f"dag_id={dag}" / f"run_id={dag_run}" / f"task_id={task}"
    base = environ.get("AIRFLOW__API__BASE_URL", "http://localhost:8080").rstrip("/")
    url = f"{base}/dags/{quote(dag, safe='')}/runs/{quote(dag_run, safe='')}/tasks/{quote(task, safe='')}"
    return RunLog(run, path / f"attempt={asked['try_number']}.log", url)


def _older(path: Path) -> Path:
    """What `drawdown upkeep` sets aside."""
    return path.with_name(f"{path.name}.old")


def _read(*paths: Path) -> Iterator[str]:
    for path in paths:
        if path.is_file():
            with path.open(errors="replace") as file:
                yield from (line.rstrip("\n") for line in file)


def _between(lines: Iterable[str], run: Run) -> Iterator[str]:
    """Yield what was written while the run went on; a line without a time belongs to the one before it."""
    begun = (run.started_at or datetime.min.replace(tzinfo=UTC)) - _AROUND
    ended = datetime.max.replace(tzinfo=UTC) if run.ended_at is None else run.ended_at + _AROUND
    inside = False
    for line in lines:
        stamp = _STAMP.match(line)
        if stamp is not None:
            inside = begun <= datetime.fromisoformat(stamp[0]).replace(tzinfo=UTC) <= ended
        if inside:
            yield line


def _event(line: str) -> str:
    """Return a line of Airflow's JSON log as text; another line as it is."""
    try:
        said = json.loads(line)
        return f"{str(said['timestamp'])[:19].replace('T', ' ')} {str(said['level']).upper()} {said['event']}"
    except (ValueError, KeyError, TypeError):
        return line
