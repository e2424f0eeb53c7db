"""The request to replay quarantined rows: which rows, and how to patch them.

It travels as JSON from Airflow to the job, so its keys are a format: those of the parameter `quarantine` of a
drain's DAG, and of ``origin`` in the run record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from drawdown.errors import SpecError
from drawdown.quarantine.row_states import Choice

_TEXTS = {"type": "array", "items": {"type": "string", "minLength": 1}}
SCHEMA: Mapping[str, Any] = {
    "rules": {**_TEXTS, "description": "Only rows with one of these reasons."},
    "batches": {"type": "array", "items": {"type": "integer"}, "description": "Only rows of these batches."},
    "files": {**_TEXTS, "description": "Only rows of these files: a path, or the end of a path."},
    "set": {**_TEXTS, "description": "Patches: column = SQL expression over the row's columns."},
    "with_late": {"type": "boolean", "description": "Include rows behind the watermark."},
}
"""The JSON Schema of each key."""


LONGEST = 100_000
"""Characters of a request as an argument of a command; Linux takes 131,071 bytes."""


def as_argument(values: Mapping[str, Any]) -> str:
    """Return a request as the job's argument. Raises SpecError ``quarantine.patch`` if it is too long."""
    text = json.dumps(dict(values))
    if len(text) > LONGEST:
        raise SpecError(
            "quarantine.patch",
            f"the request has {len(text):,} characters, and a job takes {LONGEST:,}",
            where="the parameter `quarantine` of the DAG run",
            do="ask for fewer rules, files and patches at once, or for all open rows",
        )
    return text


@dataclass(frozen=True)
class ReplayRequest:
    """Which rows to replay, and how to patch them.

    Attributes:
        patch: each ``column = expression``.
        with_late: also rows that a stateful operator would drop as late.
    """

    choice: Choice = field(default_factory=Choice)
    patch: tuple[str, ...] = ()
    with_late: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ReplayRequest:
        """Return the request that these values of `SCHEMA` describe; other keys are left alone."""
        rules, batches, files, patch = (
            tuple(values.get(key, ())) for key in ("rules", "batches", "files", "set")
        )
        return cls(Choice(rules, batches, files), patch, bool(values.get("with_late", False)))
