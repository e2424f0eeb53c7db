"""The one shape of every `--json` document: what answered, which version, and either data or an error.

`{"drawdown": "0.1", "schema": 1, "command": "runs", "data": ...}`, or `"error": {id, what, where, do}` in the
place of `data`. `schema` is raised when a key changes its meaning or goes; keys may be added at any time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

SCHEMA = 1


@dataclass
class CommandCall:
    """What the process was asked for.

    Attributes:
        command: `checkpoint show`.
        as_json: whether its answer, and an error, too, is a JSON document.
        answered: whether there has been one: an error after it is no second document.
    """

    command: str = ""
    as_json: bool = False
    answered: bool = False


request = CommandCall()
"""Of this process: there is one command a process."""


def answer(data: Any) -> str:
    """The document of a command that did what it was asked for; times in ISO 8601, UTC."""
    request.answered = True
    return _document({"data": data})


def refusal(error: Mapping[str, str]) -> str | None:
    """The document of one that did not; None where none was asked for, or there was one."""
    if not request.as_json or request.answered:
        return None
    return _document({"error": dict(error)})


def _document(content: Mapping[str, Any]) -> str:
    head = {"drawdown": version("drawdown"), "schema": SCHEMA, "command": request.command}
    return json.dumps({**head, **content}, indent=2, ensure_ascii=False, default=str) + "\n"
