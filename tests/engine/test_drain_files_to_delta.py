"""The thin line: csv files → Delta, run by run, with malformed, future and ruled-out rows."""

from __future__ import annotations

from datetime import datetime

import pytest

from drawdown.errors import AuditFailed, RefusedError, SourceError, TransformError
from tests.support.workspace import Workspace

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


def test_each_run_continues_where_the_last_stopped(workspace: Workspace) -> None:
    workspace.pipeline("events", SPEC, **FILES)
    workspace.land("landing/events/a.csv", [HEADER, "1,1.5,2024-01-01T00:00:00Z"], mtime=1)
    first = workspace.run("events")
    workspace.land("landing/events/b.csv", [HEADER, "2,2.5,2024-01-01T01:00:00Z"], mtime=2)
    workspace.land("landing/events/c.csv", [HEADER, "3,3.5,2024-01-01T02:00:00Z"], mtime=3)
    second = workspace.run("events")

    assert workspace.delta("tables/events") == [(1, 1.5), (2, 2.5), (3, 3.5)]
    assert (first.counts.read, first.counts.published, first.batches) == (1, 1, 1)
    assert (second.counts.read, second.counts.published, second.batches) == (2, 2, 2)
    assert second.state == "succeeded"
    assert second.verdict == "pass"


def test_a_run_with_nothing_new_does_nothing(workspace: Workspace) -> None:
    workspace.pipeline("events", SPEC, **FILES)
    workspace.land("landing/events/a.csv", [HEADER, "1,1.5,2024-01-01T00:00:00Z"])
    workspace.run("events")
    before = workspace.snapshot()

    report = workspace.drain("events")[0]

    assert report.run is None
    assert report.error is None
    assert workspace.snapshot() == before


def test_every_row_read_is_accounted_for(workspace: Workspace) -> None:
    workspace.pipeline(
        "events",
        SPEC,
        **FILES,
        quality_yaml="""
        rules:
          - {name: positive, check: amount > 0, on_fail: quarantine}
          - {name: small, check: amount < 100, on_fail: warn}
        """,
    )
    workspace.land(
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
    workspace.land("landing/events/b.csv", [HEADER, "6,1,2024-01-01T11:00:00Z"], mtime=2)
    workspace.land(
        "landing/events/c.csv", [HEADER, "7,1,2024-01-01T01:00:00Z", "8,1,2024-01-01T11:00:00Z"], mtime=3
    )

    run = workspace.run("events")

    counts = run.counts
    assert (counts.read, counts.malformed, counts.future, counts.quarantined, counts.fed) == (9, 1, 1, 2, 5)
    assert counts.balanced
    assert (counts.warned, counts.late, counts.staged, counts.published) == (1, 1, 5, 5)
    assert workspace.delta("tables/events") == [(1, 1.5), (5, 500.0), (6, 1.0), (7, 1.0), (8, 1.0)]
    rejected = {tuple(row["reasons"]): row for row in workspace.quarantined("events")}
    assert set(rejected) == {("malformed",), ("future",), ("positive",)}
    assert rejected[("malformed",)]["payload"] == "x,1,2024-01-01T10:00:00Z"
    assert rejected[("malformed",)]["file"].endswith("landing/events/a.csv")
    assert rejected[("future",)]["event_time"].year == 2099
    assert {row["batch_id"] for row in rejected.values()} == {0}
    assert len(workspace.quarantined("events")) == 4


def test_one_row_of_2099_does_not_move_the_watermark(workspace: Workspace) -> None:
    workspace.pipeline("events", SPEC, **FILES)
    workspace.land("landing/events/a.csv", [HEADER, "1,1,2024-01-01T10:00:00Z", "2,1,2099-01-01T00:00:00Z"])
    run = workspace.run("events")
    assert run.watermark is not None
    assert run.watermark.replace(tzinfo=None) == datetime(2024, 1, 1, 9)


def test_a_failing_audit_publishes_nothing_and_names_the_expectation(workspace: Workspace) -> None:
    workspace.pipeline(
        "events",
        SPEC,
        **FILES,
        quality_yaml="""
        expectations:
          - type: expect_column_values_to_be_between
            kwargs: {column: amount, min_value: 0, max_value: 10}
        """,
    )
    workspace.land("landing/events/a.csv", [HEADER, "1,5,2024-01-01T10:00:00Z"])
    assert workspace.run("events").verdict == "pass"
    workspace.land("landing/events/b.csv", [HEADER, "2,5000,2024-01-01T11:00:00Z"])

    with pytest.raises(AuditFailed) as failed:
        workspace.run("events")

    assert "expect_column_values_to_be_between" in str(failed.value)
    assert "5000" in str(failed.value)
    assert workspace.delta("tables/events") == [(1, 5.0)]
    with workspace.metastore() as metastore:
        run = metastore.runs("events")[0]
        assert (run.state, run.verdict, run.counts.published) == ("failed", "fail", 0)
        assert [b.status for b in metastore.batches("events", 1)].count("held") == 1


def test_malformed_fail_stops_the_run_and_a_mended_file_goes_through(workspace: Workspace) -> None:
    spec = SPEC.replace("watermark:", "malformed: fail\n    watermark:")
    workspace.pipeline("events", spec, **FILES)
    bad = workspace.land("landing/events/a.csv", [HEADER, "x,1,2024-01-01T10:00:00Z"], mtime=1)
    with pytest.raises(SourceError) as failed:
        workspace.run("events")
    assert failed.value.id == "source.malformed"
    assert workspace.delta("tables/events") == []

    bad.write_text(f"{HEADER}\n1,1,2024-01-01T10:00:00Z\n")
    workspace.run("events")
    assert workspace.delta("tables/events") == [(1, 1.0)]


def test_malformed_drop_is_counted_and_not_kept(workspace: Workspace) -> None:
    spec = SPEC.replace("watermark:", "malformed: drop\n    watermark:")
    workspace.pipeline("events", spec, **FILES)
    workspace.land("landing/events/a.csv", [HEADER, "x,1,2024-01-01T10:00:00Z", "2,2,2024-01-01T10:00:00Z"])
    run = workspace.run("events")
    assert (run.counts.read, run.counts.malformed, run.counts.fed) == (2, 1, 1)
    assert workspace.quarantined("events") == []


def test_a_rule_with_fail_stops_the_run_before_anything_is_visible(workspace: Workspace) -> None:
    workspace.pipeline(
        "events", SPEC, **FILES, quality_yaml="rules: [{name: positive, check: amount > 0, on_fail: fail}]\n"
    )
    workspace.land("landing/events/a.csv", [HEADER, "1,-1,2024-01-01T10:00:00Z"])
    with pytest.raises(TransformError) as failed:
        workspace.run("events")
    assert failed.value.id == "rule.failed"
    assert "positive" in failed.value.what
    assert workspace.delta("tables/events") == []


def test_a_bound_stops_between_batches_and_the_next_run_goes_on(workspace: Workspace) -> None:
    workspace.pipeline("events", SPEC + "drain: {max_batches: 2}\n", **FILES)
    for i in range(5):
        workspace.land(f"landing/events/{i}.csv", [HEADER, f"{i},1,2024-01-01T0{i}:00:00Z"], mtime=i + 1)
    first, second, third = (workspace.run("events") for _ in range(3))
    assert [r.counts.read for r in (first, second, third)] == [2, 2, 1]
    assert "2 batches" in str(first.stop_reason)
    assert len(workspace.delta("tables/events")) == 5


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
    workspace: Workspace, change: tuple[str, str], named: str
) -> None:
    workspace.pipeline("events", SPEC, **FILES)
    workspace.land("landing/events/a.csv", [HEADER, "1,1,2024-01-01T10:00:00Z"])
    workspace.run("events")
    workspace.land("landing/events/b.csv", [HEADER, "2,1,2024-01-01T10:00:00Z"])
    workspace.land("landing/other/b.csv", [HEADER, "2,1,2024-01-01T10:00:00Z"])
    workspace.pipeline("events", SPEC.replace(*change), **FILES)
    before = workspace.snapshot()

    with pytest.raises(RefusedError) as refused:
        workspace.run("events")

    assert refused.value.id == "checkpoint.changed"
    assert named in refused.value.what
    assert workspace.snapshot() == before


def test_a_transform_that_raises_is_one_error_with_its_line(workspace: Workspace) -> None:
    spec = SPEC.replace("transform.sql", "transform.py")
    workspace.pipeline(
        "events", spec, **FILES, transform_py="def transform(sources):\n    return sources['nothing']\n"
    )
    workspace.land("landing/events/a.csv", [HEADER, "1,1,2024-01-01T10:00:00Z"])
    with pytest.raises(TransformError) as failed:
        workspace.run("events")
    assert failed.value.id == "transform.raised"
    assert failed.value.where.endswith("transform.py:2")
    assert not (workspace.storage / "tables").exists()


def test_a_sink_folder_that_holds_something_else_is_refused(workspace: Workspace) -> None:
    workspace.pipeline("events", SPEC, **FILES)
    workspace.land("landing/events/a.csv", [HEADER, "1,1,2024-01-01T10:00:00Z"])
    workspace.land("tables/events/letters.txt", "dear")
    with pytest.raises(RefusedError) as refused:
        workspace.run("events")
    assert refused.value.id == "sink.foreign"


def test_a_second_run_of_the_same_pipeline_is_refused_at_once(workspace: Workspace) -> None:
    from datetime import timedelta

    from drawdown.errors import BusyError

    workspace.pipeline("events", SPEC, **FILES)
    workspace.land("landing/events/a.csv", [HEADER, "1,1,2024-01-01T10:00:00Z"])
    with workspace.metastore() as metastore:
        metastore.acquire("events", "elsewhere pid 7", "other-run", timedelta(minutes=5))
        with pytest.raises(BusyError) as busy:
            workspace.run("events")
        assert "elsewhere pid 7" in busy.value.what
        assert metastore.runs("events") == []


def test_output_drift_is_an_error_by_name(workspace: Workspace) -> None:
    files = {**FILES, "transform_sql": "SELECT id, amount AS total, 1 AS extra FROM events"}
    workspace.pipeline("events", SPEC, **files)
    workspace.land("landing/events/a.csv", [HEADER, "1,1,2024-01-01T10:00:00Z"])
    with pytest.raises(RefusedError) as refused:
        workspace.run("events")
    for word in ("`amount` is missing", "`total` is extra", "`extra` is extra"):
        assert word in refused.value.what
