"""quality.yaml: rules and expectations are unique, and a mistake is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.errors import SpecError
from tests.support.spec_folders import PIPELINE, SpecFolders

RULE = "  - {name: a, check: x > 0, on_fail: warn}\n"
TWO_STREAMS = PIPELINE.replace(", static: true", "")


@pytest.mark.parametrize(
    ("quality", "id", "line", "says"),
    [
        ("rules:\n" + RULE + RULE, "spec.duplicate-name", 3, "'a'"),
        ("rules:\n  - {name: a, chek: x, on_fail: warn}\n", "spec.unknown-key", 2, "'check'"),
        ("rules:\n  - {name: a, check: x, on_fail: warm}\n", "spec.wrong-value", 2, "quarantine"),
        ("rules:\n  - {name: a, source: departure, check: x, on_fail: warn}\n", "spec.unknown-source", 2,
         "'departures'"),
        ("rules:\n  - {name: a, source: airports, check: x, on_fail: warn}\n", "spec.unknown-source", 2,
         "streaming"),
        ("expectations:\n  - type: column_max\n", "spec.wrong-value", 2, "pattern"),
        ("expectations:\n  - type: expect_a\n  - type: expect_a\n", "spec.duplicate-name", 3, "name"),
        ("expectations:\n  - {type: expect_a, severity: error}\n", "spec.wrong-value", 2, "'fail'"),
        ("rule: []\n", "spec.unknown-key", 1, "'rules'"),
        ("", "spec.yaml", 1, "keys and values"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line(
    tmp_path: Path, quality: str, id: str, line: int, says: str
) -> None:
    folders = SpecFolders(tmp_path)
    folders.add(quality=quality)
    with pytest.raises(SpecError) as caught:
        folders.load()
    assert caught.value.id == id, str(caught.value)
    assert caught.value.where == f"include/pipelines/hourly/quality.yaml:{line}"
    assert says in str(caught.value)


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
