"""Data Docs can be browsed, are bounded, and say what the verdict says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from drawdown.metastore.records import Outcome, Verdict
from drawdown.quality.data_docs import KEPT, docs_folder, write_docs
from drawdown.storage import Storage
from tests.support.quality import finding


def verdict(at: int, outcome: Outcome = "pass", **entry: Any) -> Verdict:
    held = finding(kwargs={"column": "origin", "value_set": ["<EWR>"]})
    run_id = f"20260131T09{at // 60:02}{at % 60:02}-1a2b3c4d"
    return Verdict("flights", 1, run_id, at, at, outcome, [held | entry], f"{outcome}: <text>")


def test_the_index_links_to_the_last_slices_newest_first_and_old_pages_are_gone(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    for at in range(KEPT + 10):
        write_docs(storage, verdict(at, "fail" if at == KEPT else "pass"))
    folder = tmp_path / docs_folder("flights")
    links = re.findall(r'href="([^"]+)"', (folder / "index.html").read_text())
    assert links == sorted(links, reverse=True)
    assert len(links) == KEPT
    assert {path.name for path in folder.iterdir()} == {*links, "index.html"}
    assert sum(link.endswith("_fail.html") for link in links) == 1
    assert 'href="index.html"' in (folder / links[0]).read_text()


def test_a_slice_judged_again_keeps_one_page_for_each_verdict(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    write_docs(storage, verdict(1))
    write_docs(storage, verdict(1))
    assert len(list((tmp_path / docs_folder("flights")).iterdir())) == 2


def test_a_page_shows_what_did_not_hold_with_all_text_escaped(tmp_path: Path) -> None:
    failed = verdict(3, "fail", success=False, unexpected_count=1200, samples=[{"origin": "<b>XXX"}])
    write_docs(Storage(str(tmp_path)), failed)
    (page,) = (tmp_path / docs_folder("flights")).glob("2026*.html")
    text = page.read_text()
    for shown in ("known_origin", "1,200 unexpected", "&lt;b&gt;XXX", "&lt;EWR&gt;", "batch 3"):
        assert shown in text
    assert "<b>XXX" not in text


def test_what_was_not_judged_is_said_and_a_slice_of_nothing_has_no_page(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    write_docs(storage, Verdict("flights", 1, "r", -1, -1, "empty"))
    assert not (tmp_path / docs_folder("flights")).exists()
    write_docs(storage, verdict(1, unjudged="0 of 10 published slices needed"))
    (page,) = (tmp_path / docs_folder("flights")).glob("2026*.html")
    assert "not judged yet" in page.read_text()
