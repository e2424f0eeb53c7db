"""`drawdown jars`: what Spark's JVM needs and no Python package brings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from drawdown.cli.command import Commands
from drawdown.cli.screen import children_write_to, err, out, working

app = Commands(
    help="The jars that Spark needs: connectors, Delta, Drawdown's own classes.", no_args_is_help=True
)


@app.callback()
def jars() -> None:
    """The jars that Spark needs: connectors, Delta, Drawdown's own classes."""


@app.command()
def fetch(
    copies: Annotated[
        Path | None,
        typer.Option(
            "--from", exists=True, file_okay=False, help="Take them from this folder, not from the network."
        ),
    ] = None,
) -> None:
    """Fetch the jars of Drawdown's lock, each checked by SHA-256; needs Java 17 or later.

    They go to $DRAWDOWN_HOME/.drawdown if that is set, else into the Python environment. Then Drawdown's few
    Java classes are compiled and the driver's class archive is made. Called again, it makes what is missing.
    """
    from drawdown.jvm.home import machine_root
    from drawdown.jvm.java import require_java
    from drawdown.jvm.prepare import prepare

    require_java()
    root = machine_root(_project_or_here())
    state_dir = root / ".drawdown"
    if not prepare(root, _step, copies):
        err().print(
            f"The class archive was not made (see {state_dir / 'logs' / 'archive.log'}): runs start slower."
        )
    out().print(f"[green]✓[/] jars in {state_dir}", soft_wrap=True)


def _project_or_here() -> Path:
    """An image is often made before a project is in it."""
    from drawdown.errors import SpecError
    from drawdown.spec import find_root

    try:
        return find_root()
    except SpecError:
        return Path.cwd()


@contextmanager
def _step(text: str, log: Path) -> Iterator[None]:
    err().print(text)
    with children_write_to(log), working(text):
        yield
