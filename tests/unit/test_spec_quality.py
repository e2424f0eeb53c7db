"""quality.yaml: rules and expectations are unique, and a mistake is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.errors import SpecError
from tests.support.spec_folders import PIPELINE, SpecFolders

RULE = "  - {name: a, check: x > 0, on_fail: warn}\n"
TWO_STREAMS = PIPELINE.replace(", static: true", "")


def test_with_two_streams_a_rule_must_say_its_source(tmp_path: Path) -> None:
    folders = SpecFolders(tmp_path)
    folders.add(pipeline=TWO_STREAMS, quality="rules:\n" + RULE)
    with pytest.raises(SpecError, match="must name its source: departures, airports"):
        folders.load()


def test_the_same_expectation_on_two_columns_has_two_ids(tmp_path: Path) -> None:
    folders = SpecFolders(tmp_path)
    folders.add(
        quality="expectations:\n  - {type: expect_a, kwargs: {column: x}}\n"
        "  - {type: expect_a, kwargs: {column: y}, severity: warn}\n"
        "  - {type: expect_a, kwargs: {column: y}, name: again}\n"
    )
    assert [each.id for each in folders.load().quality.expectations] == [
        "expect_a(x)",
        "expect_a(y)",
        "again",
    ]
