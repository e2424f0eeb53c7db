"""docs/quality.md says what is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from drawdown.quality.expectations import NOT_ON_SPARK, OUTSIDE_THE_SLICE, RESERVED, validate_expectations
from drawdown.spec.history import HistoryExpectation, Measure
from tests.support.quality import pipeline_with

DOCUMENT = (Path(__file__).parents[2] / "docs" / "quality.md").read_text()


def test_the_example_is_a_valid_quality_yaml() -> None:
    pipeline = pipeline_with("".join(re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)))
    validate_expectations(pipeline)
    assert [rule.on_fail for rule in pipeline.quality.rules] == ["quarantine", "warn"]
    assert [e.severity for e in pipeline.quality.expectations] == ["fail", "warn"]
    assert [e.measure for e in pipeline.quality.history if e.severity == "warn"] == ["volume", "mean"]


def test_every_measure_is_in_the_table_of_history() -> None:
    section = DOCUMENT[DOCUMENT.index("## History") : DOCUMENT.index("## Verdicts")]
    assert all(f"| `{measure}` |" in section for measure in get_args(Measure))
    assert f"({HistoryExpectation.model_fields['runs'].default} unless said otherwise)" in section


def test_everything_that_is_refused_is_named() -> None:
    listed = DOCUMENT[DOCUMENT.index("Refused are:") : DOCUMENT.index("`severity` is `fail`")]
    for word in RESERVED | OUTSIDE_THE_SLICE:
        assert f"`{word}`" in listed
    assert all("like_pattern" in name or f"`{name}`" in listed for name in NOT_ON_SPARK)
