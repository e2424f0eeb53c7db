"""Names of tables: what a sink may call its own, and the path of the sink that gave itself a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property

from drawdown.errors import SpecError
from drawdown.spec.reading.folder_files import FolderFiles
from drawdown.spec.reading.model import problem
from drawdown.spec.reading.yaml_source import parse

_DELTA_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
# PostgreSQL's own schemas, and the table in which Drawdown notes what is published.
_NOT_OURS = re.compile(r"(pg_\w*|information_schema)\..*|.*\.drawdown_ledger", re.IGNORECASE)
LEDGER = "drawdown_ledger"
_NAMES_A_TABLE = re.compile(r"\btable\s*:")


def check_table(kind: str, table: str) -> None:
    """Raises a PydanticCustomError (``wrong-value``) for a name that a sink of this kind cannot have."""
    if kind == "delta" and not _DELTA_NAME.fullmatch(table):
        raise problem(
            "wrong-value", "must be a name of small letters, digits and _", "table", do="correct the name"
        )
    if kind == "postgres" and "." not in table:
        raise problem("wrong-value", "must name its schema", "table", do=f"write public.{table}")
    if kind == "postgres" and _NOT_OURS.fullmatch(table):
        raise problem("wrong-value", "is a table that no pipeline may write", "table", do="name another")


class TablePaths:
    """Table name to path, of the pipeline folders whose sink says ``table:``; read once, when first asked.

    Other pipelines are read no further than that: one that is broken elsewhere hides no table, and what is
    wrong with it is said where it is loaded.
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
