"""docs/performance.md names every benchmark, and is made of figures that are kept until new ones come."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.benchmarks import page
from tests.benchmarks.__main__ import BENCHMARKS
from tests.benchmarks.comparison import Comparison, in_turns
from tests.support.spark import ROOT

TEXT = (ROOT / "docs" / "performance.md").read_text()


def test_the_page_names_every_benchmark_that_there_is() -> None:
    for name in BENCHMARKS:
        assert importlib.util.find_spec(f"tests.benchmarks.{name}") is not None
        assert f"| `{name}` |" in TEXT
    assert {path.stem for path in page.FIGURES.glob("*.json")} <= set(BENCHMARKS)


def test_the_page_is_made_of_the_figures_that_were_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "performance.md"
    copy.write_text(TEXT)
    monkeypatch.setattr(page, "PAGE", copy)
    page.write_page()
    assert copy.read_text() == TEXT


def test_figures_come_behind_the_mark_and_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = tmp_path / "performance.md"
    written.write_text(f"# About\n\n{page.MARK}\n\nold figures\n")
    monkeypatch.setattr(page, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(page, "PAGE", written)
    ours = Comparison("a drain", "by hand", "s", [1.0, 3.0, 2.0], [2.0, 2.0, 2.0], 1.05)
    assert page.present("small_runs", [ours]) == 0
    assert page.present("audit", [Comparison("an audit", "by hand", "s", [3.0], [1.0], 2.0)]) == 1
    page.write_page()
    text = written.read_text()
    assert text.startswith("# About")
    assert "old figures" not in text
    assert (
        "| a drain | 2.00 (1.00 to 3.00) s | by hand | 2.00 (2.00 to 2.00) s | 1.00 | at most 1.05 |" in text
    )
    assert "## Audit" in text


@pytest.mark.parametrize(("warm_up", "called"), [(True, 6), (False, 5)])
def test_turns_alternate_and_a_pair_that_warms_up_does_not_count(warm_up: bool, called: int) -> None:
    taken: list[str] = []

    def way(name: str) -> Callable[[int], int]:
        return lambda turn: taken.append(name) or turn  # type: ignore[func-returns-value]

    pairs = in_turns(way("A"), way("B"), warm_up=warm_up)
    assert taken == ["A", "B"] * called
    assert pairs == [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]
