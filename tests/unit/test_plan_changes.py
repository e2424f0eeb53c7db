"""Which changes a checkpoint takes, and what is said of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from drawdown.plan.fingerprint import spec_fingerprint
from drawdown.plan.spec_changes import change_verdicts, changes
from tests.support.changes import EVENT, SPEC
from tests.support.sandbox import Sandbox

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
    refused, allowed = change_verdicts(
        "clicks", changes(NOTED, {**NOTED, "state.partitions": 4, "versions": {}})
    )
    assert (refused.level, refused.id, refused.about) == ("refused", "checkpoint.changed", "state.partitions")
    assert refused.what.startswith("state.partitions was 2 and is now 4: ")
    assert "`drawdown checkpoint accept clicks --why ...`" in refused.do
    assert (allowed.level, allowed.id, allowed.about) == ("allowed", "checkpoint.change-allowed", "versions")


KEPT = {
    "operator": "inner join",
    "left_keys": ["events.k string"],
    "right_keys": ["names.k string not null"],
    "left": ["events.k string", "events.v bigint"],
    "right": ["names.k string"],
    "until": {"left": -3_600_000, "right": None},
}


@pytest.mark.parametrize(
    ("now", "allowed"),
    [
        ({}, True),
        ({"left": ["events.k string", "events.w bigint"]}, False),
        ({"left": ["events.v bigint", "events.k string"]}, False),
        ({"left": ["events.k string"]}, False),
        ({"right": ["names.k string not null"]}, False),
        ({"right_keys": ["names.k string"]}, True),
        ({"until": {"left": -1, "right": None}}, True),
        ({"until": {"left": -3_600_000, "right": -1}}, True),
        ({"until": {"left": -7_200_000, "right": None}}, False),
        ({"until": {"left": None, "right": None}}, False),
        ({"operator": "left outer join", "condition": []}, False),
    ],
)
def test_state_fits_that_is_read_as_it_was_written(now: dict[str, Any], allowed: bool) -> None:
    before = {**NOTED, "state.kept": [KEPT]}
    found = changes(before, {**before, "state.kept": [{**KEPT, **now}]})
    assert all(change.allowed for change in found) is allowed


def test_what_is_kept_is_said_in_a_sentence() -> None:
    more = {**KEPT, "right": ["names.k string", "names.v bigint"]}
    (change,) = changes({"state.kept": [KEPT]}, {"state.kept": [more]})
    assert str(change) == (
        "state.kept was inner join on events.k string = names.k string not null, keeping events.k string,"
        " events.v bigint of the left from -3600000 ms behind the watermark and names.k string of the right"
        " and is now inner join on events.k string = names.k string not null, keeping events.k string,"
        " events.v bigint of the left from -3600000 ms behind the watermark and names.k string,"
        " names.v bigint of the right"
    )


def test_one_more_operator_does_not_fit() -> None:
    (change,) = changes({"state.kept": [KEPT]}, {"state.kept": [KEPT, KEPT]})
    assert not change.allowed


def test_where_both_know_what_is_kept_the_analysed_operators_say_nothing() -> None:
    before = {**NOTED, "state.kept": [KEPT]}
    assert changes(before, {**before, "state.operators": ["max(events.v) bigint by nothing"]}) == []


def test_an_older_checkpoint_is_compared_by_what_it_noted() -> None:
    older = json.loads(
        (Path(__file__).parents[1] / "fixtures" / "fingerprint_before_kept_state.json").read_text()
    )
    now = {**older, "state.kept": [KEPT], "sink.keys": ["k"]}
    assert changes(older, now) == []
    (change,) = changes(older, {**now, "state.operators": ["min(events.v) bigint by events.k string"]})
    assert not change.allowed


@pytest.mark.parametrize(
    ("now", "allowed"),
    [(["day", "k"], True), (["k"], False), (["k", "day", "j"], False), (["k", "j"], False)],
)
@pytest.mark.parametrize("sink", ["format: delta, path: tables/out", "format: postgres, table: public.out"])
def test_other_keys_of_a_sink_are_refused(tmp_path: Path, sink: str, now: list[str], allowed: bool) -> None:
    login = "host: db.example.org, dbname: out, user: loader, password: '${DD_PASSWORD:-}'"
    sandbox = Sandbox(tmp_path / "project", more=f"databases:\n  default: {{{login}}}\n")

    def noted(keys: list[str]) -> dict[str, Any]:
        spec = SPEC.format(
            sink=f"{sink}, schema: out.ddl, mode: update, keys: [{', '.join(keys)}]", source="", suffix="sql"
        )
        columns = {"out_ddl": "k STRING, j STRING, day DATE, n BIGINT"}
        return spec_fingerprint(
            sandbox.pipeline("changed", spec, event_ddl=EVENT, transform_sql="SELECT 1", **columns)
        )

    (change,) = changes(noted(["k", "day"]), noted(now))
    assert (change.key, change.allowed) == ("sink.keys", allowed)
    assert str(change) == f"sink.keys was k, day and is now {', '.join(now)}"


@pytest.mark.parametrize(
    ("before", "now", "allowed"),
    [
        ("4.2.0", "4.3.0", True),
        ("4.10.0", "4.9.1", False),
        ("4.2.1", "4.2.0", False),
        ("4.2.0", "4.2.0-x", True),
    ],
)
def test_a_checkpoint_goes_on_with_a_newer_spark_and_not_with_an_older_one(
    before: str, now: str, allowed: bool
) -> None:
    (change,) = changes({**NOTED, "versions": {"spark": before}}, {**NOTED, "versions": {"spark": now}})
    assert change.allowed is allowed
    assert ("snapshot from before the upgrade" in change.why) is not allowed
