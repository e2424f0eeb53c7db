"""`history:`: what a slice is compared with, and what is said of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drawdown.errors import SpecError
from drawdown.quality import audit
from drawdown.quality.audit import GxAuditor
from drawdown.quality.drift import judge_history
from drawdown.quality.verdict_text import describe
from tests.support.quality import pipeline_with


def judged(asked: str, measured: dict[str, Any], past: list[dict[str, Any]]) -> dict[str, Any]:
    """The one entry of `history: [{asked}]`; `past` is newest first."""
    (entry,) = judge_history(pipeline_with(f"history: [{{{asked}}}]").quality.history, measured, past)
    return entry


def slices(key: str, *values: Any) -> list[dict[str, Any]]:
    return [{key: value} for value in values]


@pytest.mark.parametrize(
    ("rows", "holds"), [(49, False), (50, True), (100, True), (200, True), (201, False), (0.0, False)]
)
def test_volume_is_bounded_by_ratios_to_the_median(rows: int, holds: bool) -> None:
    past = slices("volume", 90, 100, 10_000)  # one odd slice does not move it
    entry = judged("measure: volume, ratio: [0.5, 2], runs: 3", {"volume": rows}, past)
    assert (entry["success"], entry["observed"]) == (holds, rows)
    assert entry["kwargs"] == {
        "ratio": [0.5, 2.0],
        "runs": 3,
        "median": 100.0,
        "min_value": 50.0,
        "max_value": 200.0,
    }


@pytest.mark.parametrize(("rate", "holds"), [(0.0, True), (0.05, True), (0.06, False)])
def test_a_rate_is_bounded_by_its_difference_from_the_median(rate: float, holds: bool) -> None:
    key = "null_rate(tailnum)"
    asked = "measure: null_rate, column: tailnum, difference: 0.05, runs: 2"
    assert judged(asked, {key: rate}, slices(key, 0.0, 0.0))["success"] is holds


@pytest.mark.parametrize(("mean", "holds"), [(-4.0, True), (-9.0, True), (-10.5, False), (1.0, False)])
def test_a_negative_mean_has_its_bounds_in_order(mean: float, holds: bool) -> None:
    asked = "measure: mean, column: delay, ratio: [0.5, 2], runs: 2"
    entry = judged(asked, {"mean(delay)": mean}, slices("mean(delay)", -5.0, -5.0))
    assert entry["success"] is holds
    assert (entry["kwargs"]["min_value"], entry["kwargs"]["max_value"]) == (-10.0, -2.5)


def test_only_the_last_runs_count() -> None:
    past = slices("volume", 10, 10, 1_000, 1_000, 1_000)
    assert judged("measure: volume, ratio: [0.5, 2], runs: 2", {"volume": 10}, past)["success"]


def test_with_fewer_slices_than_it_needs_nothing_is_judged_and_that_is_said() -> None:
    past = slices("volume", 100)
    entry = judged("measure: volume, ratio: [0.9, 1.1], runs: 2", {"volume": 1}, past)
    assert entry["success"]
    assert describe("pass", [entry], 1).splitlines() == [
        "pass: 0 of 0 expectations passed (1 row checked)",
        "- volume: not judged yet: 1 of 2 published slices needed",
    ]


def test_a_slice_without_a_value_fails_and_earlier_ones_without_it_are_no_history() -> None:
    asked = "measure: mean, column: delay, ratio: [0.5, 2], runs: 2"
    key = "mean(delay)"
    all_null = judged(asked, {key: None}, slices(key, 5.0, 5.0))
    assert (all_null["success"], all_null["exception"]) == (False, None)
    assert judged(asked, {key: 5.0}, slices(key, None, 5.0))["unjudged"].startswith("1 of 2")


def test_freshness_is_the_greatest_time_of_all_slices_by_the_clock() -> None:
    def micros(age: timedelta) -> int:
        return int((datetime.now(UTC) - age).timestamp() * 1_000_000)

    asked, key = "measure: freshness, column: at, max_age: 2 hours", "freshness(at)"
    old, young = micros(timedelta(hours=3)), micros(timedelta(hours=1))
    assert judged(asked, {key: young}, [])["success"]
    assert judged(asked, {key: old}, slices(key, young))["success"], "late rows do not age a table"
    assert judged(asked, {}, slices(key, young))["success"]
    stale = judged(asked, {}, slices(key, old))
    assert not stale["success"]
    assert stale["observed"].startswith("3:00:0"), "some seconds may have gone by"
    assert "unjudged" in judged(asked, {}, [])


@pytest.mark.parametrize(
    ("asked", "id", "says"),
    [
        ("measure: mean, ratio: [0.5, 2]", "spec.missing-key", "needs a column"),
        ("measure: volume, column: k, ratio: [0.5, 2]", "spec.no-effect", "counts rows"),
        ("measure: volume", "spec.missing-key", "ratio and difference"),
        ("measure: volume, ratio: [0.5, 2], difference: 3", "spec.contradiction", "one of"),
        ("measure: volume, max_age: 1 hour", "spec.no-effect", "ratio or difference"),
        ("measure: null_rate, column: k, ratio: [0.5, 2]", "spec.no-effect", "difference"),
        ("measure: volume, ratio: [2, 0.5]", "spec.wrong-value", "low ratio"),
        ("measure: freshness, column: k, max_age: 1 hour, runs: 3", "spec.no-effect", "clock"),
        ("measure: volum, ratio: [0.5, 2]", "spec.wrong-value", "volume"),
    ],
)
def test_what_has_no_effect_or_no_bound_is_refused(asked: str, id: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        pipeline_with(f"history:\n  - {{{asked}}}\n")
    assert (caught.value.id, says in str(caught.value)) == (id, True), str(caught.value)
    assert caught.value.where.endswith("quality.yaml:2")


def test_two_expectations_on_one_measure_need_names() -> None:
    with pytest.raises(SpecError, match="'volume' stands twice"):
        pipeline_with("""
            history:
              - {measure: volume, ratio: [0.5, 2]}
              - {measure: volume, ratio: [0.8, 1.2], severity: warn}
        """)


def test_an_error_over_a_slice_without_rows_is_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be judged stays unjudged; what failed has no row that could be held."""
    quality = "history: [{measure: freshness, column: at, max_age: 2 hours}]"
    pipeline = pipeline_with(quality)
    old = int((datetime.now(UTC) - timedelta(hours=3)).timestamp() * 1_000_000)
    auditor = GxAuditor(lambda name, wanted: slices("freshness(at)", old))
    nothing: Any = None
    assert auditor(nothing, pipeline, 0).outcome == "warn"

    def judged_in_vain(*of: Any) -> list[dict[str, Any]]:
        return [{**each, "exception": "KeyError: 'at'"} for each in judge_history(*of)]

    monkeypatch.setattr(audit, "judge_history", judged_in_vain)
    found = auditor(nothing, pipeline, 0)
    assert (found.outcome, found.text.splitlines()[0].split(":")[0]) == ("error", "error")
