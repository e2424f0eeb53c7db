"""Finds the path of each sink with a table name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property

from drawdown.errors import SpecError
from drawdown.spec.reading.folder_files import FolderFiles
from drawdown.spec.reading.yaml_source import parse

_NAMES_A_TABLE = re.compile(r"\btable\s*:")


class TablePaths:
    """Maps the ``table:`` names of all sinks to their paths; read once, on first use.

    Only this part of other pipelines is read: an error elsewhere does not hide a table and is reported when
    that pipeline is loaded.
    """

    def __init__(self, folders: Iterable[FolderFiles]) -> None:
        self._folders = folders

    @cached_property
    def by_name(self) -> Mapping[str, str]:
        return dict(named for files in self._folders if (named := _named(files)) is not None)


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
