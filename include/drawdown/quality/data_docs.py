"""Data Docs: one page per audited slice and an index of the latest, as files in the storage root.

Great Expectations' site builder is not used: it renders its index from every stored validation, so each run
would cost more than the last. Here a run writes one page and an index made from file names alone, and removes
pages beyond the last :data:`KEPT`.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any

from drawdown.layout import data_docs_of
from drawdown.metastore.records import Verdict
from drawdown.storage import Storage

KEPT = 50
"""Pages kept per pipeline: two days of hourly runs, and few enough to list in each run. The metastore keeps
every verdict."""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font-family: sans-serif; margin: 2rem; }}
th, td {{ padding: .3rem .7rem; border-bottom: 1px solid #ccc; text-align: left; vertical-align: top; }}
.fail, .error {{ color: #b00020; }} .warn {{ color: #8a5a00; }} .pass, .empty {{ color: #1b5e20; }}
</style></head><body><h1>{title}</h1>{body}</body></html>
"""


def docs_folder(pipeline: str) -> str:
    """Return the folder of a pipeline's pages in the storage root; open its ``index.html``."""
    return data_docs_of(pipeline)


def page_name(verdict: Verdict) -> str:
    """Return the name of a verdict's page in that folder."""
    # Run ids sort by time; a watch judges many slices in one run.
    return f"{verdict.run_id}_{max(verdict.last_batch, 0):010d}_{verdict.outcome}.html"


def write_docs(storage: Storage, verdict: Verdict) -> None:
    """Write the verdict's page, remove pages beyond the last KEPT and rewrite the index.

    An empty slice without judged expectations gets no page.

    Raises:
        DrawdownError: the storage cannot be written.
    """
    if verdict.outcome == "empty" and not verdict.results:
        return
    folder = docs_folder(verdict.pipeline)
    name = page_name(verdict)
    storage.write_atomic(f"{folder}/{name}", _page(verdict).encode())
    there = {info.name for info in storage.list_files(f"{folder}/*.html")} | {name}
    pages = sorted(there - {"index.html"}, reverse=True)
    for old in pages[KEPT:]:
        storage.delete(f"{folder}/{old}")
    storage.write_atomic(f"{folder}/index.html", _index(verdict.pipeline, pages[:KEPT]).encode())


def _index(pipeline: str, pages: list[str]) -> str:
    rows = []
    for page in pages:
        run, batch, outcome = page.removesuffix(".html").rsplit("_", 2)
        link = f'<a href="{escape(page)}">{escape(run)}</a>'
        rows.append(f'<tr><td>{link}</td><td>{int(batch)}</td><td class="{outcome}">{outcome}</td></tr>')
    head = "<tr><th>run</th><th>last batch</th><th>verdict</th></tr>"
    body = f"<p>The last {len(pages)} audited slices.</p><table>{head}{''.join(rows)}</table>"
    return _PAGE.format(title=escape(f"Data Docs: {pipeline}"), body=body)


def _page(verdict: Verdict) -> str:
    where = f"run {verdict.run_id}, {verdict.batches}"
    head = "".join(
        f"<th>{column}</th>" for column in ("expectation", "holds", "severity", "expected", "found", "sample")
    )
    rows = "".join(_row(entry) for entry in verdict.results)
    body = (
        f'<p><a href="index.html">all</a> · {escape(where)} · verdict <b class="{verdict.outcome}">'
        f"{verdict.outcome}</b></p><pre>{escape(verdict.text)}</pre><table><tr>{head}</tr>{rows}</table>"
    )
    return _PAGE.format(title=escape(f"{verdict.pipeline}: {verdict.outcome}"), body=body)


def _row(entry: dict[str, Any]) -> str:
    if "unjudged" in entry:
        holds, kind = "not judged yet", "warn"
    elif entry["exception"]:
        holds, kind = "error", "error"
    else:
        holds, kind = ("yes", "pass") if entry["success"] else ("no", entry["severity"])
    found = entry.get("unjudged") or entry["exception"] or entry["observed"]
    if found is None and entry["unexpected_count"] is not None:
        found = f"{entry['unexpected_count']:,} unexpected"
    cells = [entry["severity"], entry["kwargs"], found, entry["samples"] or None]
    return (
        f'<tr><td>{escape(entry["name"])}</td><td class="{kind}">{holds}</td>'
        + "".join(f"<td>{_text(cell)}</td>" for cell in cells)
        + "</tr>"
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return escape(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
