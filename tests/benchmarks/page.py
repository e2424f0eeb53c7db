"""What benchmarks found: printed, kept in figures/, and written as docs/performance.md.

    python -m tests.benchmarks.page

writes the page from what each benchmark has kept last.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict
from datetime import date
from pathlib import Path

from tests.benchmarks.comparison import Comparison, shown, spread
from tests.support.spark import ROOT

FIGURES = Path(__file__).with_name("figures")
PAGE = ROOT / "docs" / "performance.md"
MARK = "<!-- figures: written by `make bench` -->"


def present(about: str, found: list[Comparison]) -> int:
    """Print and keep; 1 when something is not as wanted."""
    for each in found:
        print(each, flush=True)
    keep(about, found)
    return int(not all(each.is_as_wanted for each in found))


def keep(about: str, found: list[Comparison]) -> None:
    """What there is so far: later ones may fail, after half an hour."""
    where = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    kept = {
        "date": date.today().isoformat(),
        "where": where,
        "comparisons": [asdict(each) for each in found],
    }
    FIGURES.mkdir(exist_ok=True)
    (FIGURES / f"{about}.json").write_text(json.dumps(kept, indent=1) + "\n")


def write_page() -> None:
    """The text above the mark stays; the figures below are written again."""
    text, _, _ = PAGE.read_text().partition(MARK)
    PAGE.write_text("\n".join([text + MARK, *_tables()]) + "\n")


def _tables() -> Iterator[str]:
    for path in sorted(FIGURES.glob("*.json")):
        kept = json.loads(path.read_text())
        yield ""
        yield f"## {path.stem.replace('_', ' ').capitalize()}"
        yield ""
        yield f"`python -m tests.benchmarks.{path.stem}`, {kept['date']}, {kept['where']}"
        yield ""
        yield "| what | Drawdown | rival | | ratio | wanted |"
        yield "|---|---|---|---|---|---|"
        for each in (Comparison(**comparison) for comparison in kept["comparisons"]):
            wanted = "" if each.wanted is None else f"at most {each.wanted:.2f}"
            yield (
                f"| {each.what} | {spread(each.ours)} {each.unit} | {each.rival_is} |"
                f" {spread(each.rival)} {each.unit} | {shown(each.ratio)} | {wanted} |"
            )


if __name__ == "__main__":
    write_page()
