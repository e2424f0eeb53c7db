"""Every page says what it is for, is in the index and on the site, which loads nothing from elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dev.site_pages import navigation, on_page_markdown

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
_NO_OPENING = ("#", "|", "```", "    ", "!", "-", "<", "[")
# What makes a browser ask for a file; links that a reader follows are no such thing.
_LOADED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\bsrc="([^"]+)"|<link\b[^>]*\bhref="([^"]+)\"""")


def _text(page: Path) -> str:
    """The page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    """The anchors that GitHub and the site give to headings."""
    headings = re.findall(r"^#+ (.+)$", _text(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_links_name_headings_that_exist(page: Path) -> None:
    wrong = [
        f"{target}#{anchor}"
        for target, anchor in re.findall(r"\]\((?!https?:)([\w/.-]*)#([^)]+)\)", _text(page))
        if anchor not in _anchors(page.parent / target if target else page)
    ]
    assert wrong == []


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_a_page_opens_with_what_it_is_for(page: Path) -> None:
    title, _, rest = page.read_text(encoding="utf-8").partition("\n")
    assert title.startswith("# ")
    opening = rest.strip("\n").split("\n\n")[0]
    assert not opening.startswith(_NO_OPENING), "write one or two sentences under the title"
    assert re.search(r"[.:]( |$)", opening.replace("\n", " ")), "write whole sentences"


def test_every_page_is_in_the_index() -> None:
    listed = {page for section in navigation(DOCS) for pages in section.values() for page in pages}
    there = {page.relative_to(DOCS).as_posix() for page in PAGES} - {"README.md"}
    assert there - listed == set(), "add the page to a table of docs/README.md"
    assert listed - there == set()


def test_the_site_leaves_out_links_to_files_that_it_does_not_have() -> None:
    text = "[test_x.py](../tests/unit/test_x.py), [the map](../CONTRIBUTING.md), [groups](../groups.md)"
    assert on_page_markdown(text) == "test_x.py, the map, [groups](../groups.md)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_the_site_finds_every_page_by_its_words(site: Path) -> None:
    found = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    pages = {entry["location"].partition("#")[0] for entry in found}
    for page in PAGES:
        shown = page.relative_to(DOCS).with_suffix(".html").as_posix().replace("README.html", "index.html")
        assert shown in pages
    assert any(
        "watermark.delay" in entry["text"] or "How far the watermark stays" in entry["text"]
        for entry in found
    )


def test_the_site_loads_nothing_from_another_host(site: Path) -> None:
    loaded = [
        (page.name, target)
        for page in site.rglob("*.html")
        for pair in _LOADED.findall(page.read_text(encoding="utf-8"))
        for target in pair
        if target
    ]
    assert loaded
    assert [each for each in loaded if re.match(r"(https?:)?//", each[1])] == []
    styles = "".join(file.read_text(encoding="utf-8") for file in site.rglob("*.css"))
    assert re.findall(r"""(?:@import|url\()\s*["']?(?:https?:)?//[^"')]*""", styles) == []


def test_schemas_and_pictures_are_on_the_site(site: Path) -> None:
    for folder in ("schema", "images"):
        files = [file for file in (DOCS / folder).iterdir() if file.suffix != ".md"]
        assert files
        for file in files:
            assert (site / folder / file.name).read_bytes() == file.read_bytes()
