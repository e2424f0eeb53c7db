"""What mkdocs asks while it builds the site: the navigation, and links that lead out of docs/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_HEADING = re.compile(r"## (.+)")
_LINK = re.compile(r"\]\(([\w/.-]+\.md)\)")
_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(?:tests|include|dev|examples|jobs|dags|[A-Z]+\.md)[^)]*\)")


def on_config(config: Any) -> None:
    """Makes the navigation from the index."""
    config.nav = ["README.md", *navigation(Path(config.docs_dir))]


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Leaves the text of links to files of the repository, which the site does not have."""
    return _OUTSIDE.sub(r"\1", markdown)


def navigation(docs: Path) -> list[dict[str, list[str]]]:
    """Sections and pages as docs/README.md lists them; each decision behind the page about decisions."""
    sections: list[dict[str, list[str]]] = []
    pages: list[str] = []
    for line in (docs / "README.md").read_text(encoding="utf-8").splitlines():
        if heading := _HEADING.match(line):
            pages = []
            sections.append({heading[1]: pages})
        pages += (link for link in _LINK.findall(line) if link not in pages)
    decisions = sorted((docs / "decisions").glob("0*.md"))
    return [*sections, {"Decisions": [f"decisions/{each.name}" for each in decisions]}]
