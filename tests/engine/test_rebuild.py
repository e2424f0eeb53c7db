"""A rebuild computes the output again beside the live drains, and is swapped in by one commit."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame

from drawdown.drain.attempt import Attempt
from drawdown.drain.run_context import RunContext
from drawdown.errors import RefusedError
from drawdown.plan.version_in_use import in_use, wanted
from drawdown.quality.audit import GxAuditor
from drawdown.quality.outcome import AuditOutcome
from drawdown.rebuild.publish import KINDS
from drawdown.rebuild.spark_rebuild import rebuild
from drawdown.recovery.prune import prune
from drawdown.replay.spark_replay import replay
from drawdown.spec import Pipeline, load_pipeline
from drawdown.storage import FileInfo
from drawdown.values.interval import Interval
from drawdown.workspace import Generation, Workspace
from tests.support.rebuilds import FIRST, FOURTH, SECOND, THIRD, UPDATE, Hourly, event, sums
from tests.support.replays import REPLAYED


def test_a_rebuild_with_another_grouping_key_goes_live_while_drains_go_on(hourly: Hourly) -> None:
    with (hourly.root / "include" / "project.yaml").open("a") as project:
        project.write("samples: [total]\n")
    hourly.live_version()
    hourly.arrive_and_run(1, FIRST)
    hourly.arrive_and_run(2, SECOND)
    hourly.next_version()
    run = hourly.rebuilt()
    assert (run.kind, run.state, run.generation, run.batches) == ("rebuild", "succeeded", 2, 3)
    assert run.counts.read == len(FIRST + SECOND)
    assert hourly.rows() == sums(FIRST + SECOND, "02T09", by_key=False), "readers see nothing of it"
    found = hourly.comparison()
    assert found["columns"] == {"added": ["k"], "removed": [], "retyped": []}
    assert (found["rows"], found["late"]) == ({"live": 3, "shadow": 4}, {"live": 0, "shadow": 0})
    assert (found["only_live"], found["only_shadow"]) == (1, 2), "06:00 is split by key"
    assert [each["row"] for each in found["sample"]] == [{"total": 1}, {"total": 2}, {"total": 3}]
    aggregates = found["aggregates"]["live"]
    assert [name for name, said in aggregates.items() if "max" in said] == ["total"], "a maximum is of a row"

    hourly.arrive(3, THIRD)
    assert hourly.run("hourly").generation == 1, "the live one goes on with the old version"
    assert hourly.rows() == sums(FIRST + SECOND + THIRD, "02T11", by_key=False)
    again = hourly.rebuilt()
    assert again.counts.read == len(THIRD), "it goes on where it stopped"

    version = DeltaTable(str(hourly.storage / "tables/hourly")).version()
    swapped = hourly.end("approve")
    assert (swapped.kind, swapped.generation, swapped.origin["by"]) == ("rebuild-swap", 2, "ada")
    assert hourly.rows() == sums(FIRST + SECOND + THIRD, "02T11")
    assert DeltaTable(str(hourly.storage / "tables/hourly")).version() == version + 1, "one commit"
    assert hourly.drain("hourly")[0].run is None, "nothing is new"

    run = hourly.arrive_and_run(4, FOURTH)
    assert (run.generation, run.counts.read) == (2, len(FOURTH)), "drains go on with the new version"
    assert hourly.rows() == sums(FIRST + SECOND + THIRD + FOURTH, "02T13")

    back = hourly.end("rollback")
    assert back.generation == 1
    assert hourly.rows() == sums(FIRST + SECOND + THIRD, "02T11", by_key=False)
    run = hourly.run("hourly")
    assert (run.generation, run.counts.read) == (1, len(FOURTH)), "it reads again what came since the swap"
    assert hourly.rows() == sums(FIRST + SECOND + THIRD + FOURTH, "02T13", by_key=False)


def test_a_replay_during_which_a_rebuild_is_swapped_in_goes_on_with_its_version(hourly: Hourly) -> None:
    """And with the folder's when it was rolled back: what is written is of the version in use."""
    closing = [event("04T00:10"), event("04T01:10")]
    hourly.live_version(REPLAYED)
    hourly.arrive_and_run(1, FIRST + closing)
    hourly.next_version(REPLAYED)
    hourly.rebuilt()
    for choice, by_key in (("approve", True), ("rollback", False)):

        def end_then_audit(
            rows: DataFrame, pipeline: Pipeline, count: int, choice: str = choice
        ) -> AuditOutcome:
            with hourly.metastore() as metastore:
                ended = [run for run in metastore.runs("hourly") if run.kind == KINDS[choice]]
            if not ended:
                hourly.end(choice)
            return GxAuditor()(rows, pipeline, count)

        with hourly.metastore() as metastore:
            used = in_use(Workspace(hourly.project, metastore), load_pipeline(hourly.project, "hourly"))
            day = Interval.parse("2024-01-02", "2024-01-03")
            context = RunContext(f"replay-{choice}", "test")
            workspace = Workspace(hourly.project, metastore)
            assert hourly.spark is not None
            replayed = replay(Attempt(hourly.spark, workspace, used, end_then_audit, context), day)
            assert replayed.generation == (2 if by_key else 1)
        assert hourly.rows() == sums(FIRST + closing, "04T01", by_key=by_key)


@pytest.mark.full
def test_keys_are_compared_by_their_rows_and_merged_after_the_swap(hourly: Hourly) -> None:
    hourly.live_version(UPDATE)
    hourly.arrive_and_run(1, FIRST)
    hourly.next_version(UPDATE.replace("keys: [hour]", "keys: [hour, k]"))
    # The old version has no k: by what both have, the hour alone is the key.
    hourly.rebuilt()
    found = hourly.comparison()
    assert (found["only_live"], found["only_shadow"], found["changed"]) == (0, 0, 1)
    assert not list((hourly.storage / "_drawdown/hourly/staged").rglob("*/_rebuild/2/*.parquet"))
    hourly.end("approve")
    assert hourly.rows() == sums(FIRST, "02T09")
    hourly.arrive_and_run(2, [*SECOND, event("02T07:40", 100)])
    assert hourly.rows() == sums([*FIRST, *SECOND, event("02T07:40", 100)], "02T10")


@pytest.mark.full
def test_a_drain_in_the_midst_of_a_rebuild_disturbs_neither(hourly: Hourly) -> None:
    """Both have staged rows, and rows that were set aside, which nobody sees yet."""
    hourly.live_version(UPDATE)
    hourly.arrive_and_run(1, FIRST)
    hourly.next_version(UPDATE.replace("keys: [hour]", "keys: [hour, k]"))
    hourly.arrive(2, SECOND)
    hourly.land("landing/events/3.json", ["{broken"])

    def drain_then_audit(rows: DataFrame, pipeline: Pipeline, count: int) -> AuditOutcome:
        assert hourly.run("hourly").generation == 1
        return GxAuditor()(rows, pipeline, count)

    assert hourly.spark is not None
    with hourly.metastore() as metastore:
        workspace = Workspace(hourly.project, metastore)
        pipeline, context = wanted(hourly.project, "hourly"), RunContext("r1", "test")
        run = rebuild(Attempt(hourly.spark, workspace, pipeline, drain_then_audit, context))
    assert (run.generation, run.counts.malformed) == (2, 1)
    assert hourly.rows() == sums(FIRST + SECOND, "02T10", by_key=False)
    assert [row["generation"] for row in hourly.quarantined("hourly")] == [1]
    hourly.end("approve")
    assert hourly.rows() == sums(FIRST + SECOND, "02T10")
    assert [row["generation"] for row in hourly.quarantined("hourly")] == [2]


@pytest.mark.full
def test_the_folder_itself_is_the_new_version_without_a_next_one(hourly: Hourly) -> None:
    hourly.live_version()
    hourly.arrive_and_run(1, FIRST + SECOND)
    hourly.next_version(folder="hourly")
    hourly.arrive(2, THIRD)
    with pytest.raises(RefusedError, match="no longer fits its checkpoint"):
        hourly.run("hourly")
    hourly.rebuilt()
    hourly.end("approve")
    assert hourly.rows() == sums(FIRST + SECOND + THIRD, "02T11")
    hourly.arrive_and_run(3, FOURTH)
    assert hourly.rows() == sums(FIRST + SECOND + THIRD + FOURTH, "02T13")


@pytest.mark.full
def test_rows_that_are_set_aside_are_listed_once_before_and_after_the_swap(hourly: Hourly) -> None:
    hourly.live_version()
    hourly.land("landing/events/1.json", ['{"at": "2024-01-02T06:10:00Z", "n": 1}', "{broken"])
    hourly.run("hourly")
    hourly.next_version()
    hourly.rebuilt()
    assert [row["generation"] for row in hourly.quarantined("hourly")] == [1]
    hourly.end("approve")
    assert [row["generation"] for row in hourly.quarantined("hourly")] == [2]
    hourly.end("rollback")
    assert [row["generation"] for row in hourly.quarantined("hourly")] == [1]


@pytest.mark.full
def test_prune_leaves_what_a_roll_back_needs_until_it_is_told(hourly: Hourly) -> None:
    hourly.live_version()
    hourly.arrive_and_run(1, FIRST + SECOND)
    hourly.next_version()
    hourly.rebuilt()
    hourly.end("approve")
    folder = hourly.storage / "_drawdown/hourly"
    assert "generations" not in pruned(hourly)
    assert (folder / "checkpoint-1/metadata").exists()
    assert pruned(hourly, previous=True)["generations"]
    assert not (folder / "checkpoint-1/metadata").exists()
    assert hourly.rows() == sums(FIRST + SECOND, "02T09")
    with pytest.raises(RefusedError) as refused:
        hourly.end("rollback")
    assert refused.value.id == "rebuild.pruned"
    hourly.arrive(2, THIRD)
    assert hourly.run("hourly").generation == 2


def pruned(hourly: Hourly, *, previous: bool = False) -> dict[str, list[FileInfo]]:
    """What `drawdown checkpoint prune` removes."""
    project = hourly.project
    with hourly.metastore() as metastore:
        generation = Generation.of(Workspace(project, metastore), load_pipeline(project, "hourly"))
        lease = metastore.acquire("hourly", "here", "p1", project.lease_ttl.delta)
        try:
            return prune(generation, lambda: lease, keep=3, previous=previous).removed
        finally:
            metastore.release(lease)
