"""Finds the path of each sink with a table name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from drawdown.errors import SpecError
from drawdown.spec.project_wide.claims import catalog_claim
from drawdown.spec.project_wide.collisions import RanBefore, Side, who_stays
from drawdown.spec.reading.folder_files import FolderFiles
from drawdown.spec.reading.yaml_source import parse

_NAMES_A_TABLE = re.compile(r"\btable\s*:")


class TablePaths:
    """Maps the ``table:`` names of all sinks to their paths; read once, on first use.

    Only this part of other pipelines is read: an error elsewhere does not hide a table and is reported when
    that pipeline is loaded. Of several sinks with one name it is the table of the one that ran first: a new
    folder does not become what others read.

    Args:
        folders: by pipeline.
        ask: returns who has run, None when nobody can tell; called if two sinks have one name.
    """

    def __init__(
        self, folders: Iterable[tuple[str, FolderFiles]], ask: Callable[[], RanBefore | None]
    ) -> None:
        self._folders = folders
        self._ask = ask

    @cached_property
    def _named(self) -> Mapping[str, dict[str, str]]:
        """The sinks of each table, as given, by pipeline."""
        found: dict[str, dict[str, str]] = {}
        for name, files in self._folders:
            if (named := _named(files)) is not None:
                found.setdefault(named[0], {})[name] = named[1]
        return found

    def users(self, table: str) -> Sequence[str]:
        """Return the pipelines whose sinks have this name."""
        return list(self._named.get(table, ()))

    @cached_property
    def by_name(self) -> Mapping[str, str]:
        """The path of each table; none for a name of several sinks of which none has run."""
        paths = {}
        for table, sinks in self._named.items():
            name = next(iter(sinks)) if len(sinks) == 1 else self._first(table, sinks)
            if name is not None:
                paths[table] = sinks[name]
        return paths

    def _first(self, table: str, sinks: Iterable[str]) -> str | None:
        sides = [Side((name,), catalog_claim(table)) for name in sinks]
        stay = who_stays(sides, self._ask() or {})
        return next((side.names[0] for side in stay), None)


def _named(files: FolderFiles) -> tuple[str, str] | None:
    try:
        text = files.read("pipeline.yaml")
        document = parse(text, files.shown).data if _NAMES_A_TABLE.search(text) else {}
    except SpecError:
        return None
    sink = document.get("sink")
    if not isinstance(sink, dict):
        return None
    table, path = sink.get("table"), sink.get("path")
    return (table, path) if isinstance(table, str) and isinstance(path, str) else None
