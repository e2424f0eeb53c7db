"""`drawdown explain ID`: what an error, a verdict of a plan or a notice means, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from drawdown.cli.arguments import Json
from drawdown.cli.screen import print_json, print_text
from drawdown.cli.shown.error_entry import entry_index, entry_page
from drawdown.error_registry import error_entries
from drawdown.errors import SpecError
from drawdown.values.nearest import did_you_mean

if TYPE_CHECKING:
    from drawdown.error_registry import ErrorEntry


def explain(
    id: Annotated[
        str | None,
        typer.Argument(help="An id such as lease.held, or an area such as lease.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what an id means: when it occurs, its exit code, whether a retry can help, what to do.

    Without an id: all ids by area. Reads neither project nor network.
    """
    found = _chosen(id)
    if as_json and id is not None and found[0].id == id:
        print_json(found[0].as_dict())
    elif as_json:
        print_json([entry.as_dict() for entry in found])
    elif id is None:
        print_text(entry_index(found))
    else:
        print_text("\n".join(entry_page(entry) for entry in found))


def _chosen(id: str | None) -> list[ErrorEntry]:
    """The entry of an id, those of an area, or all. Raises SpecError ``explain.unknown``."""
    entries = error_entries()
    found = [entry for entry in entries.values() if id in (None, entry.id, entry.area)]
    if not found:
        raise SpecError(
            "explain.unknown",
            f"there is no id and no area {id!r}; {did_you_mean(str(id), entries)}",
            do="drawdown explain   # lists all ids",
        )
    return found
