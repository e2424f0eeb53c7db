"""`drawdown jars`: the jars that Spark's JVM needs and no Python package contains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from drawdown.cli.arguments import Json
from drawdown.cli.command import Commands
from drawdown.cli.screen import children_write_to, err, out, print_json, working
from drawdown.errors import SpecError
from drawdown.jvm.home import machine_root
from drawdown.jvm.java import require_java
from drawdown.jvm.prepare import prepare
from drawdown.spec import find_root

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
            "--from",
            exists=True,
            file_okay=False,
            help="Copy the jars from this folder instead of downloading them.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Fetch the jars of Drawdown's lock, each checked by SHA-256; needs Java 17 or later.

    Writes to $DRAWDOWN_HOME/.drawdown if set, else into the Python environment. Then compiles Drawdown's few
    Java classes and creates the driver's class archive. Run it again to add what is missing.
    """
    require_java()
    root = machine_root(_project_or_here())
    state_dir = root / ".drawdown"
    archived = prepare(root, _step, copies)
    if not archived:
        err().print(
            f"The class archive was not made (see {state_dir / 'logs' / 'archive.log'}): runs start slower."
        )
    if as_json:
        return print_json({"folder": str(state_dir), "class_archive": archived})
    return out().print(f"[green]✓[/] jars in {state_dir}", soft_wrap=True)


def _project_or_here() -> Path:
    """Images are often built before they contain a project."""
    try:
        return find_root()
    except SpecError:
        return Path.cwd()


@contextmanager
def _step(text: str, log: Path) -> Iterator[None]:
    err().print(text)
    with children_write_to(log), working(text):
        yield
