"""The thin line: csv files → Delta, run by run, with malformed, future and ruled-out rows."""

from __future__ import annotations

from datetime import datetime

import pytest

from drawdown.errors import AuditFailed, RefusedError, SourceError, TransformError
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  events:
    format: csv
    path: landing/events
    schema: events.ddl
    options: {header: true, maxFilesPerTrigger: 1}
    watermark: {column: at, delay: 1 hour, max_future: 1 day}
transform: transform.sql
sink: {format: delta, path: tables/events, schema: out.ddl, publish: audited}
state: {partitions: 2}
"""
FILES = {
    "events_ddl": "id INT, amount DOUBLE, at TIMESTAMP",
    "out_ddl": "id INT, amount DOUBLE",
    "transform_sql": "SELECT id, amount FROM events",
}
HEADER = "id,amount,at"


def test_each_run_continues_where_the_last_stopped(sandbox: Sandbox) -> None:
    sandbox.pipeline("events", SPEC, **FILES)
    sandbox.land("landing/events/a.csv", [HEADER, "1,1.5,2024-01-01T00:00:00Z"], mtime=1)
    first = sandbox.run("events")
    sandbox.land("landing/events/b.csv", [HEADER, "2,2.5,2024-01-01T01:00:00Z"], mtime=2)
    sandbox.land("landing/events/c.csv", [HEADER, "3,3.5,2024-01-01T02:00:00Z"], mtime=3)
    second = sandbox.run("events")

    assert sandbox.delta("tables/events") == [(1, 1.5), (2, 2.5), (3, 3.5)]
    assert (first.counts.read, first.counts.published, first.batches) == (1, 1, 1)
    assert (second.counts.read, second.counts.published, second.batches) == (2, 2, 2)
    assert second.state == "succeeded"
    assert second.verdict == "pass"


@pytest.mark.capability("SEE-03")
def test_the_record_of_a_batch_names_the_first_of_its_files(sandbox: Sandbox) -> None:
    sandbox.pipeline("events", SPEC.replace(", maxFilesPerTrigger: 1", ""), **FILES)
    for number in range(22):
        row = f"{number},1.5,2024-01-01T00:00:00Z"
        sandbox.land(f"landing/events/{number:02} of.csv", [HEADER, row], mtime=number + 1)
    sandbox.run("events")
    with sandbox.metastore() as metastore:
        [batch] = [batch for batch in metastore.batches("events", 1) if batch.counts.read]
    noted = batch.by_source["events"]
    assert noted["files"] == 22
    assert noted["names"] == [f"landing/events/{number:02} of.csv" for number in range(20)]


def test_a_run_with_nothing_new_does_nothing(sandbox: Sandbox) -> None:
    sandbox.pipeline("events", SPEC, **FILES)
    sandbox.land("landing/events/a.csv", [HEADER, "1,1.5,2024-01-01T00:00:00Z"])
    sandbox.run("events")
    before = sandbox.snapshot()

    report = sandbox.drain("events")[0]

    assert report.run is None
    assert report.error is None
    assert sandbox.snapshot() == before


def test_every_row_read_is_accounted_for(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        "events",
        SPEC,
        **FILES,
        quality_yaml="""
        rules:
          - {name: positive, check: amount > 0, on_fail: quarantine}
          - {name: known, check: amount IS NOT NULL, on_fail: quarantine}
          - {name: small, check: amount < 100, on_fail: warn}
        """,
    )
    sandbox.land(
        "landing/events/a.csv",
        [
            HEADER,
            "1,1.5,2024-01-01T10:00:00Z",
            "2,-1,2024-01-01T10:00:00Z",
            "3,,2024-01-01T10:00:00Z",
            "x,1,2024-01-01T10:00:00Z",
            "4,1,2099-01-01T00:00:00Z",
            "5,500,2024-01-01T10:00:00Z",
        ],
        mtime=1,
    )
    sandbox.land("landing/events/b.csv", [HEADER, "6,1,2024-01-01T11:00:00Z"], mtime=2)
    sandbox.land(
        "landing/events/c.csv", [HEADER, "7,1,2024-01-01T01:00:00Z", "8,1,2024-01-01T11:00:00Z"], mtime=3
    )

    run = sandbox.run("events")

    counts = run.counts
    assert (counts.read, counts.malformed, counts.future, counts.quarantined, counts.fed) == (9, 1, 1, 2, 5)
    assert counts.balanced
    assert (counts.warned, counts.late, counts.staged, counts.published) == (1, 1, 5, 5)
    assert sandbox.delta("tables/events") == [(1, 1.5), (5, 500.0), (6, 1.0), (7, 1.0), (8, 1.0)]
    rejected = {tuple(row["reasons"]): row for row in sandbox.quarantined("events")}
    assert set(rejected) == {("malformed",), ("future",), ("positive",), ("positive", "known")}
    assert rejected[("malformed",)]["payload"] == "x,1,2024-01-01T10:00:00Z"
    assert rejected[("malformed",)]["file"].endswith("landing/events/a.csv")
    assert rejected[("future",)]["event_time"].year == 2099
    assert {row["batch_id"] for row in rejected.values()} == {0}
    assert len(sandbox.quarantined("events")) == 4


def test_one_row_of_2099_does_not_move_the_watermark(sandbox: Sandbox) -> None:
    sandbox.pipeline("events", SPEC, **FILES)
    sandbox.land("landing/events/a.csv", [HEADER, "1,1,2024-01-01T10:00:00Z", "2,1,2099-01-01T00:00:00Z"])
    run = sandbox.run("events")
    assert run.watermark is not None
    assert run.watermark.replace(tzinfo=None) == datetime(2024, 1, 1, 9)
    with sandbox.metastore() as metastore:
        [batch] = [batch for batch in metastore.batches("events", 1) if batch.counts.read]
    assert batch.by_source["events"]["greatest"].startswith("2024-01-01T10:00:00")


def test_a_failing_audit_publishes_nothing_and_names_the_expectation(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        "events",
        SPEC,
        **FILES,
        quality_yaml="""
        expectations:
          - type: expect_column_values_to_be_between
            kwargs: {column: amount, min_value: 0, max_value: 10}
        """,
    )
    sandbox.land("landing/events/a.csv", [HEADER, "1,5,2024-01-01T10:00:00Z"])
    assert sandbox.run("events").verdict == "pass"
    sandbox.land("landing/events/b.csv", [HEADER, "2,5000,2024-01-01T11:00:00Z"])

    with pytest.raises(AuditFailed) as failed:
        sandbox.run("events")

    assert "expect_column_values_to_be_between" in str(failed.value)
    assert "5000" in str(failed.value)
    assert sandbox.delta("tables/events") == [(1, 5.0)]
    with sandbox.metastore() as metastore:
        run = metastore.runs("events")[0]
        assert (run.state, run.verdict, run.counts.published) == ("failed", "fail", 0)
        assert [b.status for b in metastore.batches("events", 1)].count("held") == 1


def test_malformed_fail_stops_the_run_and_a_fixed_file_goes_through(sandbox: Sandbox) -> None:
    spec = SPEC.replace("watermark:", "malformed: fail\n    watermark:")
    sandbox.pipeline("events", spec, **FILES)
    bad = sandbox.land("landing/events/a.csv", [HEADER, "x,1,2024-01-01T10:00:00Z"], mtime=1)
    with pytest.raises(SourceError) as failed:
        sandbox.run("events")
    assert failed.value.id == "source.malformed"
    assert sandbox.delta("tables/events") == []

    bad.write_text(f"{HEADER}\n1,1,2024-01-01T10:00:00Z\n")
    sandbox.run("events")
    assert sandbox.delta("tables/events") == [(1, 1.0)]


def test_malformed_drop_is_counted_and_not_kept(sandbox: Sandbox) -> None:
    spec = SPEC.replace("watermark:", "malformed: drop\n    watermark:")
    sandbox.pipeline("events", spec, **FILES)
    rows = ["x,1,2024-01-01T10:00:00Z", "2,2,2024-01-01T10:00:00Z", "3,3,2099-01-01T00:00:00Z"]
    sandbox.land("landing/events/a.csv", [HEADER, *rows])
    run = sandbox.run("events")
    assert (run.counts.read, run.counts.malformed, run.counts.future, run.counts.fed) == (3, 1, 1, 1)
    assert [row["reasons"] for row in sandbox.quarantined("events")] == [["future"]]


def test_a_rule_with_fail_stops_the_run_before_anything_is_visible(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        "events", SPEC, **FILES, quality_yaml="rules: [{name: positive, check: amount > 0, on_fail: fail}]\n"
    )
    sandbox.land("landing/events/a.csv", [HEADER, "1,-1,2024-01-01T10:00:00Z"])
    with pytest.raises(TransformError) as failed:
        sandbox.run("events")
    assert failed.value.id == "rule.failed"
    assert "positive" in failed.value.what
    assert sandbox.delta("tables/events") == []


def test_a_bound_stops_between_batches_and_the_next_run_goes_on(sandbox: Sandbox) -> None:
    sandbox.pipeline("events", SPEC + "drain: {max_batches: 2}\n", **FILES)
    for i in range(5):
        sandbox.land(f"landing/events/{i}.csv", [HEADER, f"{i},1,2024-01-01T0{i}:00:00Z"], mtime=i + 1)
    first, second, third = (sandbox.run("events") for _ in range(3))
    assert [r.counts.read for r in (first, second, third)] == [2, 2, 1]
    assert "2 batches" in str(first.stop_reason)
    assert len(sandbox.delta("tables/events")) == 5


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("path: landing/events\n", "path: landing/other\n"), "sources.events"),
        (("state: {partitions: 2}", "state: {partitions: 3}"), "state.partitions"),
        (("state: {partitions: 2}", "state: {partitions: 2, provider: hdfs}"), "state.provider"),
        (("path: tables/events,", "path: tables/elsewhere,"), "sink"),
    ],
)
def test_a_change_that_state_cannot_take_is_refused_and_touches_nothing(
    sandbox: Sandbox, change: tuple[str, str], named: str
) -> None:
    sandbox.pipeline("events", SPEC, **FILES)
    sandbox.land("landing/events/a.csv", [HEADER, "1,1,2024-01-01T10:00:00Z"])
    sandbox.run("events")
    sandbox.land("landing/events/b.csv", [HEADER, "2,1,2024-01-01T10:00:00Z"])
    sandbox.land("landing/other/b.csv", [HEADER, "2,1,2024-01-01T10:00:00Z"])
    sandbox.pipeline("events", SPEC.replace(*change), **FILES)
    before = sandbox.snapshot()

    with pytest.raises(RefusedError) as refused:
        sandbox.run("events")

    assert refused.value.id == "checkpoint.changed"
    assert named in refused.value.what
    assert sandbox.snapshot() == before


def test_a_transform_that_raises_is_one_error_with_its_line(sandbox: Sandbox) -> None:
    spec = SPEC.replace("transform.sql", "transform.py")
    sandbox.pipeline(
        "events", spec, **FILES, transform_py="def transform(sources):\n    return sources['nothing']\n"
    )
    sandbox.land("landing/events/a.csv", [HEADER, "1,1,2024-01-01T10:00:00Z"])
    with pytest.raises(TransformError) as failed:
        sandbox.run("events")
    assert failed.value.id == "transform.raised"
    assert failed.value.where.endswith("transform.py:2")
    assert not (sandbox.storage / "tables").exists()


def test_a_sink_folder_that_holds_something_else_is_refused(sandbox: Sandbox) -> None:
    sandbox.pipeline("events", SPEC, **FILES)
    sandbox.land("landing/events/a.csv", [HEADER, "1,1,2024-01-01T10:00:00Z"])
    sandbox.land("tables/events/letters.txt", "dear")
    with pytest.raises(RefusedError) as refused:
        sandbox.run("events")
    assert refused.value.id == "sink.foreign"


def test_a_second_run_of_the_same_pipeline_is_refused_at_once(sandbox: Sandbox) -> None:
    from datetime import timedelta

    from drawdown.errors import BusyError

    sandbox.pipeline("events", SPEC, **FILES)
    sandbox.land("landing/events/a.csv", [HEADER, "1,1,2024-01-01T10:00:00Z"])
    with sandbox.metastore() as metastore:
        metastore.acquire("events", "elsewhere pid 7", "other-run", timedelta(minutes=5))
        with pytest.raises(BusyError) as busy:
            sandbox.run("events")
        assert "elsewhere pid 7" in busy.value.what
        assert metastore.runs("events") == []


def test_output_drift_is_an_error_by_name(sandbox: Sandbox) -> None:
    files = {**FILES, "transform_sql": "SELECT id, amount AS total, 1 AS extra FROM events"}
    sandbox.pipeline("events", SPEC, **files)
    sandbox.land("landing/events/a.csv", [HEADER, "1,1,2024-01-01T10:00:00Z"])
    with pytest.raises(RefusedError) as refused:
        sandbox.run("events")
    for word in ("`amount` is missing", "`total` is extra", "`extra` is extra"):
        assert word in refused.value.what
