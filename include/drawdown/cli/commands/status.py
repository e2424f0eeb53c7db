"""`drawdown status`: how all pipelines stand, in one screen, from records alone. Needs no Spark."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from drawdown.cli.arguments import Json, Names, Wide
from drawdown.cli.chosen import require_known
from drawdown.cli.screen import out, print_json
from drawdown.spec import load_project, pipeline_names

if TYPE_CHECKING:
    from drawdown.fleet.standing import Standing
    from drawdown.workspace import Workspace

_CTRL_C = 130


def status(
    names: Names = None,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(min=0.5, max=3_600, help="Seconds between two looks.")] = 5.0,
    wide: Wide = False,
    as_json: Json = False,
) -> None:
    """Show how pipelines stand, worst first: state, last publish, rows, held slices, freshness, what to do.

    Everything is as runs have recorded it: no source is listed. Ends with 0 whatever it shows.
    """
    from drawdown.cli.shown.status import status_screen, status_values
    from drawdown.workspace import Workspace

    if watch and as_json:
        raise typer.BadParameter("--watch is for a screen: it has no --json")
    with Workspace.open(load_project()) as workspace:
        if as_json:
            print_json([status_values(each) for each in _look(workspace, names or [])])
        elif watch:
            _watch(workspace, names or [], every, wide=wide)
        else:
            out().print(status_screen(_look(workspace, names or []), wide=wide))


def _look(workspace: Workspace, names: Sequence[str]) -> list[Standing]:
    from drawdown.observe.standings import standings_with_signs

    for name in names:
        require_known(workspace, name)
    return standings_with_signs(workspace, list(dict.fromkeys(names)) or pipeline_names(workspace.project))


def _watch(workspace: Workspace, names: Sequence[str], every: float, *, wide: bool) -> None:
    """Until Ctrl-C; without a terminal one screen below the other."""
    from rich.live import Live

    from drawdown.cli.shown.status import status_screen

    console = out()
    with Live(console=console, auto_refresh=False) if console.is_terminal else nullcontext() as live:
        try:
            while True:
                screen = status_screen(_look(workspace, names), wide=wide)
                console.print(screen) if live is None else live.update(screen, refresh=True)
                time.sleep(every)
        except KeyboardInterrupt:
            raise typer.Exit(_CTRL_C) from None
