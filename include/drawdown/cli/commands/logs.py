"""`drawdown logs`: the log of a run, or where it is. Needs no Spark."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from drawdown.cli.arguments import Json, Name
from drawdown.cli.chosen import require_known
from drawdown.cli.screen import err, print_json, print_text
from drawdown.errors import DrawdownError, MachineError, SpecError
from drawdown.spec import load_project
from drawdown.values.nearest import did_you_mean

if TYPE_CHECKING:
    from drawdown.fleet.run_log import RunLog
    from drawdown.metastore.records import Run
    from drawdown.workspace import Workspace

_LOOK_EVERY = 0.5
_CTRL_C = 130
_RUNS = 1_000


def logs(
    name: Name,
    run_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]", help="Its id, or the beginning; default: the newest run.", show_default=False
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run ends.")] = False,
    as_json: Json = False,
) -> None:
    """Print what the driver of a run wrote; of a run by Airflow the log of its task.

    Of `drawdown run` and other commands this is the run's part of .drawdown/logs/spark.log.
    """
    from drawdown.fleet.run_log import find_log
    from drawdown.workspace import Workspace

    if follow and as_json:
        raise typer.BadParameter("--follow is for a screen: it has no --json")
    with Workspace.open(load_project()) as workspace:
        require_known(workspace, name)
        log = find_log(workspace.project, _run(workspace, name, run_id))
        if not log.is_here:
            raise _elsewhere(log)
        if as_json:
            values = {"run_id": log.run.run_id, "path": log.path, "url": log.url or None}
            return print_json({**values, "lines": list(log.lines())})
        err().print(f"run {log.run.run_id} ({log.run.state}), in {log.path}", markup=False)
        for line in _followed(workspace, log) if follow else log.lines():
            print_text(f"{line}\n")
    if log.run.error:
        err().print(f"{log.run.error['id']}: {log.run.error['what']}", markup=False)
        if do := log.run.error.get("do"):
            err().print(f"  do:    {do}", markup=False)
    return None


def _run(workspace: Workspace, name: str, run_id: str | None) -> Run:
    runs = workspace.metastore.runs(name, limit=1 if run_id is None else _RUNS)
    found = next((run for run in runs if run.run_id.startswith(run_id or "")), None)
    if found is None:
        known = did_you_mean(run_id, [run.run_id for run in runs]) if run_id else ""
        raise SpecError(
            "cli.no-run",
            f"{name} has no run {run_id}; {known}" if run_id else f"{name} has not run yet",
            where=f"pipeline {name}",
            do=f"drawdown runs {name} --wide" if run_id else f"drawdown run {name}",
        )
    return found


def _elsewhere(log: RunLog) -> DrawdownError:
    host = log.run.holder.partition(" pid ")[0] or "another machine"
    if host == socket.gethostname() and not log.url:
        return SpecError(
            "logs.none",
            f"run {log.run.run_id} left no log: it ended before Spark started, or the file was removed",
            where=str(log.path),
            do=f"drawdown runs {log.run.pipeline} --id {log.run.run_id}",
        )
    return MachineError(
        "logs.elsewhere",
        f"the log of run {log.run.run_id} is not on this machine; it ran on {host}",
        where=str(log.path),
        do=f"open {log.url}" if log.url else f"drawdown runs {log.run.pipeline} --id {log.run.run_id}",
    )


def _followed(workspace: Workspace, log: RunLog) -> Iterator[str]:
    """Yield lines as they come, until the run has ended or Ctrl-C."""
    seen = 0
    try:
        while True:
            now = workspace.metastore.run(log.run.run_id)
            for line in islice(log.lines(), seen, None):
                seen += 1
                yield line
            if now is None or now.state != "running":
                return
            time.sleep(_LOOK_EVERY)
    except KeyboardInterrupt:
        raise typer.Exit(_CTRL_C) from None
