"""How tables are looked at: by Delta's own library, without Spark."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable


class Wrong(AssertionError):
    """The project is not what the model says."""


def version(folder: Path) -> int:
    commits = sorted((folder / "_delta_log").glob("*.json"))
    return int(commits[-1].stem) if commits else 0


def rows(folder: Path) -> Counter[tuple[int, int]]:
    """Id and version of each; of windows their time, in minutes since 1970, and the count."""
    if not (folder / "_delta_log").exists():
        return Counter()
    table = DeltaTable(str(folder))
    if "id" not in [field.name for field in table.schema().fields]:
        windows = table.to_pyarrow_table().to_pylist()
        return Counter((int(row["at"].timestamp() // 60), row["n"]) for row in windows)
    found = table.to_pyarrow_table(columns=["id", "v"]).to_pylist()
    return Counter((row["id"], row["v"]) for row in found)


def equal(what: str, found: Counter[Any], expected: Counter[Any]) -> None:
    if found != expected:
        raise Wrong(f"{what}: missing {dict(expected - found)}, too many {dict(found - expected)}")


def files_named(folder: Path) -> dict[int, set[str]]:
    """By version."""
    found: dict[int, set[str]] = {}
    files: set[str] = set()
    for commit in sorted((folder / "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                files = files | {unquote(action["add"]["path"])}
            elif "remove" in action:
                files = files - {unquote(action["remove"]["path"])}
        found[int(commit.stem)] = files
    return found
