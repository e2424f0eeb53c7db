"""docs/quality.md says what is so."""

from __future__ import annotations

import re
from pathlib import Path

from drawdown.quality.expectations import NOT_ON_SPARK, OUTSIDE_THE_SLICE, RESERVED, validate_expectations
from tests.support.quality import pipeline_with

DOCUMENT = (Path(__file__).parents[2] / "docs" / "quality.md").read_text()


def test_the_example_is_a_valid_quality_yaml() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
    pipeline = pipeline_with(example)
    validate_expectations(pipeline)
    assert [rule.on_fail for rule in pipeline.quality.rules] == ["quarantine", "warn"]
    assert [e.severity for e in pipeline.quality.expectations] == ["fail", "warn"]


def test_everything_that_is_refused_is_named() -> None:
    listed = DOCUMENT[DOCUMENT.index("Refused are:") : DOCUMENT.index("`severity` is `fail`")]
    for word in RESERVED | OUTSIDE_THE_SLICE:
        assert f"`{word}`" in listed
    assert all("like_pattern" in name or f"`{name}`" in listed for name in NOT_ON_SPARK)
