"""Formats a verdict as text: what failed, what was expected, what was found."""

from __future__ import annotations

import json
from typing import Any

from drawdown.metastore.records import Outcome
from drawdown.spec.quality import columns_named
from drawdown.values.text import counted

MAX_ROW_CHARACTERS = 500


def describe(outcome: Outcome, results: list[dict[str, Any]], rows: int) -> str:
    """Return a summary line, then a paragraph per expectation that failed or was not judged."""
    judged = [entry for entry in results if "unjudged" not in entry]
    bad = [entry for entry in judged if not entry["success"]]
    part = f"{len(bad) or len(judged)} of {counted(len(judged), 'expectation')}"
    count = f"{part} {'failed' if bad else 'passed'}"
    lines = [f"{outcome}: {count} ({counted(rows, 'row')} checked)"]
    for entry in bad:
        lines += _paragraph(entry)
    lines += [f"- {e['name']}: not judged yet: {e['unjudged']}" for e in results if "unjudged" in e]
    return "\n".join(lines)


def _paragraph(entry: dict[str, Any]) -> list[str]:
    unnamed = entry["name"].startswith(entry["type"])
    subject = entry["type"] if unnamed else f"{entry['name']}: {entry['type']}"
    if on := columns_named(entry["kwargs"]):
        subject += " on " + ", ".join(on)
    lines = [f"- {subject}: {_verb(entry)}"]
    if expected := {k: v for k, v in entry["kwargs"].items() if not k.startswith("column")}:
        lines.append(f"    expected: {_compact(expected)}")
    if entry["exception"]:
        lines.append(f"    raised: {entry['exception']}")
    if entry["observed"] is not None:
        lines.append(f"    observed: {_compact(entry['observed'])}")
    if entry["unexpected_count"] is not None:
        lines.append(f"    unexpected: {_share(entry)}")
    lines += [f"    sample: {_compact(row)}" for row in entry["samples"]]
    return lines


def _verb(entry: dict[str, Any]) -> str:
    if entry["exception"]:
        return "error, not judged"
    return "failed" if entry["severity"] == "fail" else "failed, a warning"


def _share(entry: dict[str, Any]) -> str:
    percent = entry["unexpected_percent"]
    count = f"{entry['unexpected_count']:,}"
    return count if percent is None else f"{count} ({percent:.4g} % of the values that are not null)"


def _compact(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= MAX_ROW_CHARACTERS else text[:MAX_ROW_CHARACTERS] + "…"
