"""The page of a plan for a pull request."""

from __future__ import annotations

from typing import Any

from drawdown.cli.shown.plan_markdown import plan_markdown

VALUES: dict[str, Any] = {
    "pipeline": "sales",
    "answer": "refused",
    "generation": 2,
    "verdicts": [
        {
            "level": "refused",
            "id": "change.operators",
            "about": "state.operators",
            "what": "keys | were a\nand are <b>",
            "do": "rebuild",
        }
    ],
    "operators": [{"name": "window", "keeps": "k, n"}],
    "state": {"rows": 12345, "bytes": 6789, "files": 3},
    "fit": {"fits": "no", "batches": 4, "seconds": None, "why": "it needs 4 batches and max is 3"},
}
AMOUNTS = {"events": "7 files, 70 bytes"}


def test_a_page_says_the_answer_first_and_what_it_rests_on() -> None:
    page = plan_markdown(VALUES, AMOUNTS)
    assert page.index("would be refused") < page.index("Since the checkpoint was made")
    assert "| ❌ refused | `state.operators` | keys \\| were a and are &lt;b&gt; | rebuild |" in page
    assert "| `events` | 7 files, 70 bytes |" in page
    assert "⚠️ Does not fit one drain: it needs 4 batches and max is 3." in page
    assert "12,345 rows after the last batch; 6,789 bytes in 3 files." in page


def test_a_page_of_a_first_run_without_state_is_short() -> None:
    fit = {"fits": "yes", "batches": 1, "seconds": None, "why": "it needs 1 batch"}
    first = {
        **VALUES,
        "answer": "start",
        "verdicts": [],
        "operators": [],
        "state": None,
        "generation": None,
        "fit": fit,
    }
    page = plan_markdown(first, AMOUNTS)
    assert "would start" in page
    assert "no run yet" in page
    assert "No changes, no warnings." in page
    assert "### State" not in page
