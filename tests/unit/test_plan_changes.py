"""Which changes a checkpoint takes, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from drawdown.plan.changes import change_verdicts, changes

NOTED = {
    "sources.events": "json landing/events",
    "sources.events.options": {"maxFilesPerTrigger": 2, "header": True},
    "sink": "parquet tables/out",
    "source_order": ["events"],
    "state.operators": ["count(1) bigint by events.k string"],
    "state.partitions": 2,
    "versions": {"spark": "4.2.0"},
}


def _said(**now: Any) -> list[tuple[bool, str]]:
    changed = {key.replace("__", "."): value for key, value in now.items()}
    return [(change.allowed, str(change)) for change in changes(NOTED, {**NOTED, **changed})]


def test_nothing_changed_is_nothing_said() -> None:
    assert changes(NOTED, dict(NOTED)) == []


def test_of_options_only_what_differs_is_shown() -> None:
    options = {"maxFilesPerTrigger": 5, "header": True, "latestFirst": True}
    assert _said(sources__events__options=options) == [
        (
            True,
            "sources.events.options was maxFilesPerTrigger 2"
            " and is now maxFilesPerTrigger 5, latestFirst True",
        )
    ]
    assert _said(sources__events__options={"header": True}) == [
        (True, "sources.events.options was maxFilesPerTrigger 2 and is now not set")
    ]


def test_a_source_more_or_less_is_a_change_and_its_options_are_not_a_second_one() -> None:
    more = {"sources.more": "csv landing/more", "sources.more.options": {}}
    assert [change.key for change in changes(NOTED, {**NOTED, **more})] == ["sources.more"]
    assert [change.key for change in changes({**NOTED, **more}, NOTED)] == ["sources.more"]


def test_what_an_older_checkpoint_did_not_note_is_unknown_and_not_changed() -> None:
    older = {key: NOTED[key] for key in ("sources.events", "sink", "state.partitions")}
    older |= {"operators": ["Aggregate [k], [k, count(1) AS n]"], "watermark_policy": "min"}
    assert changes(older, {**NOTED, "watermark_policy": "min"}) == []


def test_a_part_of_a_fingerprint_says_nothing_of_the_rest() -> None:
    assert changes({**NOTED, "sink.identity": "a"}, {"sink.identity": "a"}) == []
    assert [c.key for c in changes({**NOTED, "sink.identity": "a"}, {"sink.identity": "b"})] == [
        "sink.identity"
    ]


def test_lists_show_what_only_one_side_has_or_their_order() -> None:
    assert _said(state__operators=["max(events.v) bigint by events.k string"]) == [
        (
            False,
            "state.operators was count(1) bigint by events.k string"
            " and is now max(events.v) bigint by events.k string",
        )
    ]
    both = {**NOTED, "source_order": ["a", "b"]}
    assert [str(c) for c in changes(both, {**both, "source_order": ["b", "a"]})] == [
        "source_order was a, b and is now b, a"
    ]


@pytest.mark.parametrize(
    ("before", "now", "allowed"),
    [
        ("parquet tables/out", "kafka topic t", True),
        ("delta tables/out", "kafka topic t", True),
        ("kafka topic t", "kafka topic u", True),
        ("kafka topic t", "foreach rows.py", True),
        ("foreach rows.py", "kafka topic t", True),
        ("foreach rows.py", "foreach other.py", True),
        ("kafka topic t", "parquet tables/out", False),
        ("parquet tables/out", "parquet tables/other", False),
        ("parquet tables/out", "delta tables/out", False),
        ("parquet tables/out", "foreach rows.py", False),
        ("foreach rows.py", "delta tables/out", False),
    ],
)
def test_sinks_change_as_the_guide_says(before: str, now: str, allowed: bool) -> None:
    (change,) = changes({**NOTED, "sink": before}, {**NOTED, "sink": now})
    assert change.allowed is allowed


@pytest.mark.parametrize(
    ("option", "allowed"), [("rocksdb.maxOpenFiles", True), ("compression.codec", False)]
)
def test_a_state_option_that_the_offset_log_keeps_is_refused(option: str, allowed: bool) -> None:
    (change,) = changes({**NOTED, "state.options": {}}, {**NOTED, "state.options": {option: "a"}})
    assert change.allowed is allowed
    assert str(change) == f"state.options was not set and is now {option} a"


def test_a_change_is_a_verdict_with_both_values() -> None:
    refused, allowed = change_verdicts(changes(NOTED, {**NOTED, "state.partitions": 4, "versions": {}}))
    assert (refused.level, refused.id, refused.about) == ("refused", "checkpoint.changed", "state.partitions")
    assert refused.what.startswith("state.partitions was 2 and is now 4: ")
    assert refused.do
    assert (allowed.level, allowed.id, allowed.about) == ("allowed", "checkpoint.change-allowed", "versions")
