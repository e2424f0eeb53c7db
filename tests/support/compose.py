"""docker-compose.yaml as Compose reads it: merged, its variables replaced."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yaml"
# Forms of https://compose-spec.io, chapter Interpolation, that the file uses; `$$` is a plain dollar.
VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?P<kind>:-|:\?)?(?P<text>[^}]*)\}")


def unresolved() -> dict[str, Any]:
    """The file with anchors and merge keys resolved, variables as they are written."""
    loaded: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return loaded


def resolved(variables: Mapping[str, str]) -> dict[str, Any]:
    """The file with its variables replaced; KeyError for one that has neither value nor default."""
    replaced: dict[str, Any] = _replaced(unresolved(), variables)
    return replaced


def variables_of(text: str) -> Iterator[re.Match[str]]:
    """Every reference to a variable in a text."""
    return VARIABLE.finditer(text)


def example() -> dict[str, str]:
    """The lines NAME=value of .env.example; an empty value is a secret to be made."""
    lines = (ROOT / ".env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def _replaced(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, variables) for item in value]
    if not isinstance(value, str):
        return value

    def one(found: re.Match[str]) -> str:
        if not variables.get(found["name"]) and found["kind"] == ":-":
            return found["text"]
        return variables[found["name"]]

    return VARIABLE.sub(one, value).replace("$$", "$")
