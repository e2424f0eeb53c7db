"""Names of tables: the path of the sink that gave itself the name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from drawdown.errors import SpecError
from drawdown.spec.yaml_source import parse

_NAMES_A_TABLE = re.compile(r"\btable\s*:")


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
