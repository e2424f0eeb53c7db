"""Formats a plan as a page for a pull request: the answer first, then the details."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drawdown.values.text import counted

_ANSWERS = {
    "refused": "❌ **The next run would be refused.** Nothing would be changed.",
    "start": "✅ **The next run would start.**",
    "nothing": "✅ **The next run has nothing to do.**",
}
_SIGNS = {"refused": "❌ refused", "warning": "⚠️ warning", "allowed": "✅ allowed", "note": "note"}


def plan_markdown(values: Mapping[str, Any], amounts: Mapping[str, str]) -> str:
    """Return the page.

    Args:
        values: the JSON form of the plan (`drawdown plan --json`).
        amounts: per source, a description of what a run would read.
    """
    verdicts = values["verdicts"]
    generation = values["generation"]
    of = "no run yet" if generation is None else f"checkpoint generation {generation}"
    parts = [
        f"## Plan of `{values['pipeline']}`",
        f"{_ANSWERS[values['answer']]} ({of})",
        "### Since the checkpoint was made",
        _table(
            ("verdict", "about", "what", "do"),
            [
                (_SIGNS[v["level"]], f"`{v['about']}`" if v["about"] else "", v["what"], v["do"])
                for v in verdicts
            ],
        )
        if verdicts
        else "No changes, no warnings.",
        "### What a run would read",
        _table(("source", "amount"), [(f"`{name}`", amount) for name, amount in amounts.items()]),
        _fit(values["fit"]),
        *([f"Size of the cluster: {_cell(values['size'])}."] if values.get("size") else ()),
    ]
    if values["operators"]:
        rows = [(o["name"], o["keeps"]) for o in values["operators"]]
        parts += ["### State", _state(values["state"]), _table(("operator", "keeps"), rows)]
    return "\n\n".join(parts) + "\n"


def state_sentence(state: Mapping[str, Any] | None) -> str:
    """Describe the size of the state."""
    if state is None:
        return "no state yet"
    rows = "rows not counted" if state["rows"] is None else counted(state["rows"], "row")
    return (
        f"{rows} after the last batch; {counted(state['bytes'], 'byte')} in {counted(state['files'], 'file')}"
    )


def _state(state: Mapping[str, Any] | None) -> str:
    return state_sentence(state)[:1].upper() + state_sentence(state)[1:] + "."


def _fit(fit: Mapping[str, Any]) -> str:
    sign = {"yes": "✅ Fits one drain", "no": "⚠️ Does not fit one drain", "unknown": "❔ May fit one drain"}
    return f"{sign[fit['fits']]}: {_cell(fit['why'])}."


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    """Return one line with Markdown escaped."""
    flat = " ".join(text.split()).replace("|", "\\|")
    return flat.replace("<", "&lt;").replace(">", "&gt;")
