"""Rows of a quarantine that pass now go through the live transform, once."""

from __future__ import annotations

from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from drawdown.errors import DrawdownError, RefusedError, SpecError, TransformError
from drawdown.metastore.records import UNPUBLISHED
from tests.support.armed import armed
from tests.support.sandbox import Sandbox
from tests.support.set_aside import CORRECTED, NAME, STRICT, closed, fill, land, replay, states, write
from tests.support.two_streams import WATERMARK, arrive, joining, spec


@pytest.fixture
def hourly(sandbox: Sandbox) -> Sandbox:
    fill(sandbox)
    return sandbox


def test_rows_that_a_fixed_rule_lets_pass_are_in_the_live_window_once(hourly: Sandbox) -> None:
    write(hourly, CORRECTED)
    run = replay(hourly)
    assert (run.kind, run.state, run.counts.replayed) == ("quarantine-replay", "succeeded", 2)
    assert (run.counts.read, run.counts.fed, run.counts.balanced) == (0, 0, True)
    assert run.origin["left"] == {"malformed": 1, "ruled out": 1}
    assert states(hourly) == {"95": "replayed", "96": "replayed", "150": "open", "broken": "open"}
    again = replay(hourly)
    assert (again.state, again.counts.replayed, again.batches) == ("succeeded", 0, 0)
    land(hourly, "c", "3,2024-01-01T11:30:00Z,1")
    hourly.run(NAME)
    assert closed(hourly) == [(10, 4, 24)]
    with hourly.metastore() as metastore:
        assert sum(each.counts.replayed for each in metastore.runs(NAME)) == 2


def unpublished(sandbox: Sandbox) -> set[str]:
    with sandbox.metastore() as metastore:
        return {batch.status for batch in metastore.batches(NAME, 1, UNPUBLISHED)}


@pytest.mark.parametrize(
    ("step", "left"), [("before verdict.note", "committed"), ("before publish.commit", "passed")]
)
def test_the_next_replay_publishes_what_one_that_failed_behind_its_batch_has_left(
    hourly: Sandbox, step: str, left: str
) -> None:
    write(hourly, CORRECTED)
    land(hourly, "c", "3,2024-01-01T11:30:00Z,1")
    with armed(f"fail {step}"), pytest.raises(DrawdownError):
        replay(hourly)
    assert states(hourly)["95"] == "replayed"
    assert unpublished(hourly) == {left}
    assert closed(hourly) == []
    again = replay(hourly)
    assert (again.state, again.counts.replayed) == ("succeeded", 0)
    assert unpublished(hourly) == set()
    assert closed(hourly) == [(10, 4, 24)]


def test_a_retried_task_of_a_dag_run_completes_what_its_first_try_has_begun(hourly: Sandbox) -> None:
    write(hourly, CORRECTED)
    land(hourly, "c", "3,2024-01-01T11:30:00Z,1")
    with armed("fail after batch.note 3"), pytest.raises(DrawdownError):
        replay(hourly, dag_run_id="manual__1")
    # Spark has committed the batch of the rows, and died in a later one.
    assert states(hourly)["95"] == "replaying"
    with pytest.raises(RefusedError) as refused:
        replay(hourly, dag_run_id="manual__2")
    assert refused.value.id == "quarantine.unfinished"
    again = replay(hourly, dag_run_id="manual__1")
    assert (again.state, again.counts.replayed) == ("succeeded", 0)
    assert unpublished(hourly) == set()
    assert closed(hourly) == [(10, 4, 24)]


def test_a_patch_fixes_a_record_that_could_not_be_parsed(hourly: Sandbox) -> None:
    run = replay(hourly, patch=("delay = cast(cast(delay as double) as int)",), rules=("malformed",))
    assert run.counts.replayed == 1
    assert states(hourly)["broken"] == "replayed"
    land(hourly, "c", "3,2024-01-01T11:30:00Z,1")
    hourly.run(NAME)
    assert closed(hourly) == [(10, 3, 13)]


def test_a_patch_computes_and_does_nothing_more(hourly: Sandbox) -> None:
    before = states(hourly)
    for patch, found in {
        "delay": "quarantine.patch",
        "delay = (select 1)": "quarantine.patch",
        "delya = 1": "quarantine.patch",
        "delay = delya + 1": "quarantine.patch-refused",
        "delay = reflect('java.lang.System', 'exit', 1)": "quarantine.patch",
        "delay = cast('x' as int)": "quarantine.patch-failed",
    }.items():
        with pytest.raises((SpecError, TransformError)) as refused:
            replay(hourly, patch=(patch,))
        assert refused.value.id == found, patch
    assert states(hourly) == before
    assert hourly.drain(NAME)[0].run is None


def test_rows_that_would_be_dropped_as_late_stay_open_until_they_are_asked_for(hourly: Sandbox) -> None:
    land(hourly, "c", "3,2024-01-01T11:30:00Z,1")
    hourly.run(NAME)
    land(hourly, "d", "3,2024-01-01T11:31:00Z,1")
    hourly.run(NAME)
    write(hourly, CORRECTED)
    run = replay(hourly)
    assert (run.counts.replayed, run.origin["left"]["late"]) == (0, 2)
    assert states(hourly)["95"] == "open"
    run = replay(hourly, with_late=True)
    assert (run.counts.replayed, run.counts.late) == (2, 2)
    assert states(hourly)["95"] == "replayed"
    assert closed(hourly) == [(10, 2, 10)], "Spark dropped them, and they are counted"


@pytest.mark.full
def test_new_data_goes_on_in_the_same_run(hourly: Sandbox) -> None:
    write(hourly, CORRECTED)
    land(hourly, "c", "3,2024-01-01T11:30:00Z,1")
    run = replay(hourly)
    assert (run.counts.replayed, run.counts.read, run.counts.balanced) == (2, 1, True)
    assert closed(hourly) == [(10, 4, 24)]


def test_a_rewound_checkpoint_opens_its_rows_again(hourly: Sandbox) -> None:
    write(hourly, CORRECTED)
    replay(hourly)
    with hourly.metastore() as metastore:
        [decision] = metastore.decisions(NAME)
        lease = metastore.acquire("hourly", "this test", "rewind", hourly.project.lease_ttl.delta)
        metastore.forget_batches(lease, 1, decision.batch_id - 1)
    assert states(hourly)["95"] == "open"


@pytest.mark.full
def test_an_older_table_is_given_its_later_columns(hourly: Sandbox) -> None:
    folder = str(hourly.storage / "quarantine/hourly")
    old = DeltaTable(folder).to_pyarrow_table().drop_columns(["parsed", "generation", "set_aside_at"])
    write_deltalake(folder, old, mode="overwrite", schema_mode="overwrite")
    assert states(hourly)["95"] == "open"
    write(hourly, CORRECTED)
    assert replay(hourly).counts.replayed == 2
    land(hourly, "c", "150,2024-01-01T11:30:00Z,1")
    hourly.run(NAME)
    assert {row["generation"] for row in hourly.quarantined(NAME)} == {None, 1}


def test_a_pipeline_that_has_never_run_has_nothing_to_replay(sandbox: Sandbox) -> None:
    write(sandbox, STRICT)
    land(sandbox, "a", "1,2024-01-01T10:00:00Z,5")
    with pytest.raises(RefusedError) as refused:
        replay(sandbox)
    assert refused.value.id == "quarantine.none"


@pytest.mark.full
@pytest.mark.parametrize("side", ["orders", "payments"])
def test_a_run_that_feeds_rows_of_the_quarantine_keeps_the_same_in_state(sandbox: Sandbox, side: str) -> None:
    """What a join keeps is in the fingerprint: with another one the next run would be refused."""
    sql = """SELECT orders.id, orders.at AS ordered, payments.at AS paid FROM orders JOIN payments
        ON orders.id = payments.id AND payments.at BETWEEN orders.at AND orders.at + INTERVAL 1 HOUR"""
    out = "id BIGINT, ordered TIMESTAMP, paid TIMESTAMP"
    joining(sandbox, spec(orders=WATERMARK, payments=WATERMARK), sql, out, name=NAME)
    quality = sandbox.root / f"include/pipelines/{NAME}/quality.yaml"
    rule = f"rules: [{{name: small, source: {side}, check: id < MOST, on_fail: quarantine}}]\n"
    quality.write_text(rule.replace("MOST", "5"))
    arrive(sandbox, "1", orders=[(1, "10:00"), (7, "10:00")], payments=[(1, "10:05"), (7, "10:06")])
    assert sandbox.run(NAME).counts.quarantined == 1

    def kept() -> Any:
        with sandbox.metastore() as metastore:
            checkpoint = metastore.active_checkpoint(NAME)
        assert checkpoint is not None
        return checkpoint.fingerprint["state.kept"]

    before = kept()
    assert before != []
    quality.write_text(rule.replace("MOST", "9"))
    assert replay(sandbox).counts.replayed == 1
    assert kept() == before
    arrive(sandbox, "2", orders=[(2, "10:10")], payments=[(2, "10:12")])
    sandbox.run(NAME)
    assert [row[0] for row in sandbox.delta("tables/out")] == [1, 2, 7]
