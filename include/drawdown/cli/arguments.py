"""Arguments and options that many commands have, spelled once."""

from __future__ import annotations

from typing import Annotated

import typer


def pipelines_that_begin(incomplete: str) -> list[str]:
    """For the shell: the pipelines of the project around the current folder; none outside of one."""
    from drawdown.errors import SpecError
    from drawdown.spec import find_root

    try:
        folder = find_root() / "include" / "pipelines"
        return sorted(
            each.name
            for each in folder.iterdir()
            if each.name.startswith(incomplete) and each.name[0] not in "._" and each.is_dir()
        )
    except (SpecError, OSError):
        return []


Name = Annotated[
    str, typer.Argument(metavar="PIPELINE", show_default=False, autocompletion=pipelines_that_begin)
]
SomeName = Annotated[
    str | None,
    typer.Argument(metavar="[PIPELINE]", show_default=False, autocompletion=pipelines_that_begin),
]
Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[PIPELINE]...", show_default=False, autocompletion=pipelines_that_begin),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Wide = Annotated[bool, typer.Option("--wide", help="All columns, however wide.")]
Why = Annotated[str, typer.Option("--why", help="Kept in the run record.", show_default=False)]
MaybeWhy = Annotated[str, typer.Option("--why", help="Kept in the run record.")]
By = Annotated[
    str | None, typer.Option("--by", help="Who decides; default: the current user.", show_default=False)
]
