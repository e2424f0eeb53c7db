"""Names of tables: what a sink may call its own, and the path of the sink that gave itself a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from drawdown.errors import SpecError
from drawdown.spec.model import problem
from drawdown.spec.yaml_source import parse

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


def table_paths(folders: Iterable[Path]) -> Mapping[str, str]:
    """Table name to path, of the pipeline folders whose sink says ``table:``.

    Other pipelines are read no further than that: one that is broken elsewhere hides no table, and what is
    wrong with it is said where it is loaded.
    """
    found: dict[str, str] = {}
    for folder in folders:
        file = folder / "pipeline.yaml"
        try:
            text = file.read_text(encoding="utf-8")
            document = parse(text, str(file)).data if _NAMES_A_TABLE.search(text) else None
        except (OSError, UnicodeDecodeError, SpecError):
            continue
        sink = document.get("sink") if isinstance(document, dict) else None
        if (
            isinstance(sink, dict)
            and isinstance(sink.get("table"), str)
            and isinstance(sink.get("path"), str)
        ):
            found[sink["table"]] = sink["path"]
    return found
