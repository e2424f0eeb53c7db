"""Core-seconds of a group of small pipelines beside as many applications, and together beside in turn.

    python -m tests.benchmarks.groups [PIPELINES ...]

Every run drains one new file of 100 rows per pipeline into a Delta table; every fourth pipeline counts by
window, with state. The group and the single applications are submitted with the DAG's own command line,
behind its stop wrapper. Then one application drains all of them, so many at once.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from drawdown.application import application
from drawdown.launch.local import submit_conf
from drawdown.metastore import Metastore
from drawdown.spec import load_pipeline, load_project
from drawdown.workspace import Workspace
from tests.benchmarks.comparison import Comparison, in_turns
from tests.benchmarks.page import keep, present
from tests.benchmarks.usage import Usage, used_by
from tests.support.sandbox import Sandbox
from tests.support.spark import ROOT

SIZES = (3, 8, 20)
BOUNDED = 20
WANTED = 1 / 5
AT_ONCE = (2, 4)
ROWS = 100
SPEC = """
sources:
  events: {{format: json, path: landing/{name}, schema: event.ddl, watermark: {{column: at, delay: 1 hour}}}}
transform: transform.sql
sink: {{format: delta, path: tables/{name}, schema: out.ddl}}
state: {{partitions: 2}}
"""
COPY = ("at TIMESTAMP, k INT", "SELECT at, k FROM events")
COUNT = (
    "hour TIMESTAMP, k INT, n BIGINT",
    "SELECT window.start AS hour, k, count(*) AS n FROM events GROUP BY window(at, '1 hour'), k",
)


class Group:
    """A project of so many pipelines, of which every fourth has state."""

    def __init__(self, folder: Path, pipelines: int) -> None:
        folder.mkdir()
        self._folder, self._waves = folder, 0
        self.sandbox = Sandbox(folder / "project")
        self.names = [f"p{number:02}" for number in range(pipelines)]
        for number, name in enumerate(self.names):
            out, sql = COUNT if number % 4 == 3 else COPY
            self.sandbox.pipeline(
                name,
                SPEC.format(name=name),
                event_ddl="at TIMESTAMP, k INT",
                out_ddl=out,
                transform_sql=sql,
            )

    def together(self) -> Usage:
        """One application for all."""
        self._land()
        return self._submitted(*self.names)

    def apart(self) -> list[Usage]:
        """An application for each."""
        self._land()
        return [self._submitted(name) for name in self.names]

    def at_once(self, number: int) -> Usage:
        """One application for all, so many at once."""
        self._land()
        here = [sys.executable, "-m", "tests.benchmarks.groups", "--drain"]
        return used_by([*here, str(self.sandbox.root), str(number)], self._folder, {"PYTHONPATH": str(ROOT)})

    def _land(self) -> None:
        """One file for each pipeline, an hour later than the last."""
        day, hour = divmod(self._waves, 24)
        at = f"2024-01-{day + 1:02}T{hour:02}:30:00Z"
        for name in self.names:
            rows = [{"at": at, "k": k % 10} for k in range(ROWS)]
            self.sandbox.land_json(f"landing/{name}/{self._waves}.json", rows)
        self._waves += 1

    def _submitted(self, *names: str) -> Usage:
        project = self.sandbox.project
        conf = submit_conf(project, project.clusters["local"])
        settings = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        pipelines = [part for name in names for part in ("--pipeline", name)]
        job = [str(ROOT / "jobs" / "drain.py"), "--project", str(project.root), *pipelines]
        return used_by([sys.executable, "-m", "drawdown.launch.submit", *settings, *job], self._folder)


def drain_here(root: str, number: int) -> int:
    """Drain every pipeline of a project in this process, so many at once."""
    application.at_once = lambda session: number  # type: ignore[assignment]
    project = load_project(Path(root))
    names = sorted(path.name for path in project.pipelines_dir.iterdir())
    with Metastore.open(project.metastore_url) as metastore:
        work = application.SparkApplication(
            Workspace(project, metastore), submit_conf(project, project.clusters["local"])
        )
        return application.exit_code(work.drain_all([load_pipeline(project, name) for name in names]))


def main(*sizes: int) -> int:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for pipelines in sizes:
            group = Group(Path(folder) / str(pipelines), pipelines)
            group.together()  # makes the tables and checkpoints
            found.append(_apart(group))
            keep("groups", found)
        found += _at_once(group)
    return present("groups", found)


def _apart(group: Group) -> Comparison:
    pairs = in_turns(lambda _: group.together(), lambda _: group.apart(), warm_up=False)
    ours = [together.core_seconds for together, _ in pairs]
    rival = [sum(each.core_seconds for each in apart) for _, apart in pairs]
    number = len(group.names)
    wanted = WANTED if number >= BOUNDED else None
    return Comparison(
        f"{number} pipelines, one application", f"{number} applications", "core-s", ours, rival, wanted
    )


def _at_once(group: Group) -> list[Comparison]:
    found = []
    for number in AT_ONCE:
        pairs = in_turns(
            lambda _, number=number: group.at_once(number),  # type: ignore[misc]
            lambda _: group.at_once(1),
            warm_up=False,
        )
        # Not core-seconds: nobody waits for the JVM that a process of Python has started.
        ours, rival = ([pair[way].seconds for pair in pairs] for way in (0, 1))
        what = f"{len(group.names)} pipelines in one application, {number} at once"
        found.append(Comparison(what, "one after another", "s", ours, rival))
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["--drain"]:
        sys.exit(drain_here(sys.argv[2], int(sys.argv[3])))
    sys.exit(main(*(map(int, sys.argv[1:]) if sys.argv[1:] else SIZES)))
