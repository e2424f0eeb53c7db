"""A rebuild computes the output anew beside the live drains, and is swapped in by one commit."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame

from drawdown.engine.rebuild import rebuild
from drawdown.engine.replay import replay
from drawdown.engine.run_context import RunContext
from drawdown.errors import RefusedError
from drawdown.plan.rebuild import in_use, wanted
from drawdown.publishing.rebuild import KINDS
from drawdown.quality.audit import GxAuditor
from drawdown.quality.outcome import AuditOutcome
from drawdown.recovery.generation import Generation
from drawdown.recovery.prune import prune
from drawdown.spec import Pipeline, load_pipeline
from drawdown.spec.interval import Interval
from drawdown.storage import FileInfo
from tests.support.rebuilds import (
    UPDATE,
    comparison,
    end,
    event,
    land,
    live_version,
    next_version,
    rebuilt,
    rows,
    sums,
)
from tests.support.replays import REPLAYED
from tests.support.workspace import Workspace

FIRST = [event("02T06:10", 1), event("02T06:20", 2, "b"), event("02T07:30", 4)]
SECOND = [event("02T08:10", 8, "b"), event("02T09:10", 16)]
THIRD = [event("02T09:50", 32, "b"), event("02T11:10", 64)]
FOURTH = [event("02T11:50", 128, "b"), event("02T13:10", 256)]


def test_a_rebuild_with_another_grouping_key_goes_live_while_drains_go_on(workspace: Workspace) -> None:
    live_version(workspace)
    land(workspace, 1, FIRST)
    workspace.run("hourly")
    land(workspace, 2, SECOND)
    workspace.run("hourly")
    next_version(workspace)
    run = rebuilt(workspace)
    assert (run.kind, run.state, run.generation, run.batches) == ("rebuild", "succeeded", 2, 3)
    assert run.counts.read == len(FIRST + SECOND)
    assert rows(workspace) == sums(FIRST + SECOND, "02T09", by_key=False), "readers see nothing of it"
    found = comparison(workspace)
    assert found["columns"] == {"added": ["k"], "removed": [], "retyped": []}
    assert (found["rows"], found["late"]) == ({"live": 3, "shadow": 4}, {"live": 0, "shadow": 0})
    assert (found["only_live"], found["only_shadow"]) == (1, 2), "06:00 is split by key"
    assert [each["row"]["total"] for each in found["sample"]] == [1, 2, 3]

    land(workspace, 3, THIRD)
    assert workspace.run("hourly").generation == 1, "the live one goes on with the old version"
    assert rows(workspace) == sums(FIRST + SECOND + THIRD, "02T11", by_key=False)
    again = rebuilt(workspace)
    assert again.counts.read == len(THIRD), "it goes on where it stopped"

    version = DeltaTable(str(workspace.storage / "tables/hourly")).version()
    swapped = end(workspace, "approve")
    assert (swapped.kind, swapped.generation, swapped.origin["by"]) == ("rebuild-swap", 2, "ada")
    assert rows(workspace) == sums(FIRST + SECOND + THIRD, "02T11")
    assert DeltaTable(str(workspace.storage / "tables/hourly")).version() == version + 1, "one commit"
    assert workspace.drain("hourly")[0].run is None, "nothing is new"

    land(workspace, 4, FOURTH)
    run = workspace.run("hourly")
    assert (run.generation, run.counts.read) == (2, len(FOURTH)), "drains go on with the new version"
    assert rows(workspace) == sums(FIRST + SECOND + THIRD + FOURTH, "02T13")

    back = end(workspace, "rollback")
    assert back.generation == 1
    assert rows(workspace) == sums(FIRST + SECOND + THIRD, "02T11", by_key=False)
    run = workspace.run("hourly")
    assert (run.generation, run.counts.read) == (1, len(FOURTH)), "it reads again what came since the swap"
    assert rows(workspace) == sums(FIRST + SECOND + THIRD + FOURTH, "02T13", by_key=False)


def test_a_replay_during_which_a_rebuild_is_swapped_in_goes_on_with_its_version(workspace: Workspace) -> None:
    """And with the folder's when it was rolled back: what is written is of the version in use."""
    closing = [event("04T00:10"), event("04T01:10")]
    live_version(workspace, REPLAYED)
    land(workspace, 1, FIRST + closing)
    workspace.run("hourly")
    next_version(workspace, REPLAYED)
    rebuilt(workspace)
    for choice, by_key in (("approve", True), ("rollback", False)):

        def end_then_audit(
            rows: DataFrame, pipeline: Pipeline, count: int, choice: str = choice
        ) -> AuditOutcome:
            with workspace.metastore() as metastore:
                ended = [run for run in metastore.runs("hourly") if run.kind == KINDS[choice]]
            if not ended:
                end(workspace, choice)
            return GxAuditor()(rows, pipeline, count)

        with workspace.metastore() as metastore:
            used = in_use(workspace.project, metastore, load_pipeline(workspace.project, "hourly"))
            day = Interval.parse("2024-01-02", "2024-01-03")
            context = RunContext(f"replay-{choice}", "test")
            of = workspace.spark, workspace.project, used, metastore, end_then_audit, day, context
            assert replay(*of).generation == (2 if by_key else 1)  # type: ignore[arg-type]
        assert rows(workspace) == sums(FIRST + closing, "04T01", by_key=by_key)


def test_keys_are_compared_by_their_rows_and_merged_after_the_swap(workspace: Workspace) -> None:
    live_version(workspace, UPDATE)
    land(workspace, 1, FIRST)
    workspace.run("hourly")
    next_version(workspace, UPDATE.replace("keys: [hour]", "keys: [hour, k]"))
    # The old version has no k: by what both have, the hour alone is the key.
    rebuilt(workspace)
    found = comparison(workspace)
    assert (found["only_live"], found["only_shadow"], found["changed"]) == (0, 0, 1)
    assert not list((workspace.storage / "_drawdown/hourly/staged").rglob("*/_rebuild/2/*.parquet"))
    end(workspace, "approve")
    assert rows(workspace) == sums(FIRST, "02T09")
    land(workspace, 2, [*SECOND, event("02T07:40", 100)])
    workspace.run("hourly")
    assert rows(workspace) == sums([*FIRST, *SECOND, event("02T07:40", 100)], "02T10")


def test_a_drain_in_the_midst_of_a_rebuild_disturbs_neither(workspace: Workspace) -> None:
    """Both have staged rows, and rows that were set aside, which nobody sees yet."""
    live_version(workspace, UPDATE)
    land(workspace, 1, FIRST)
    workspace.run("hourly")
    next_version(workspace, UPDATE.replace("keys: [hour]", "keys: [hour, k]"))
    land(workspace, 2, SECOND)
    workspace.land("landing/events/3.json", ["{broken"])

    def drain_then_audit(rows: DataFrame, pipeline: Pipeline, count: int) -> AuditOutcome:
        assert workspace.run("hourly").generation == 1
        return GxAuditor()(rows, pipeline, count)

    assert workspace.spark is not None
    with workspace.metastore() as metastore:
        of = workspace.project, wanted(workspace.project, "hourly"), metastore
        run = rebuild(workspace.spark, *of, drain_then_audit, RunContext("r1", "test"))
    assert (run.generation, run.counts.malformed) == (2, 1)
    assert rows(workspace) == sums(FIRST + SECOND, "02T10", by_key=False)
    assert [row["generation"] for row in workspace.quarantined("hourly")] == [1]
    end(workspace, "approve")
    assert rows(workspace) == sums(FIRST + SECOND, "02T10")
    assert [row["generation"] for row in workspace.quarantined("hourly")] == [2]


def test_the_folder_itself_is_the_new_version_without_a_next_one(workspace: Workspace) -> None:
    live_version(workspace)
    land(workspace, 1, FIRST + SECOND)
    workspace.run("hourly")
    next_version(workspace, folder="hourly")
    land(workspace, 2, THIRD)
    with pytest.raises(RefusedError, match="no longer fits its checkpoint"):
        workspace.run("hourly")
    rebuilt(workspace)
    end(workspace, "approve")
    assert rows(workspace) == sums(FIRST + SECOND + THIRD, "02T11")
    land(workspace, 3, FOURTH)
    workspace.run("hourly")
    assert rows(workspace) == sums(FIRST + SECOND + THIRD + FOURTH, "02T13")


def test_rows_that_are_set_aside_are_listed_once_before_and_after_the_swap(workspace: Workspace) -> None:
    live_version(workspace)
    workspace.land("landing/events/1.json", ['{"at": "2024-01-02T06:10:00Z", "n": 1}', "{broken"])
    workspace.run("hourly")
    next_version(workspace)
    rebuilt(workspace)
    assert [row["generation"] for row in workspace.quarantined("hourly")] == [1]
    end(workspace, "approve")
    assert [row["generation"] for row in workspace.quarantined("hourly")] == [2]
    end(workspace, "rollback")
    assert [row["generation"] for row in workspace.quarantined("hourly")] == [1]


def test_prune_leaves_what_a_roll_back_needs_until_it_is_told(workspace: Workspace) -> None:
    live_version(workspace)
    land(workspace, 1, FIRST + SECOND)
    workspace.run("hourly")
    next_version(workspace)
    rebuilt(workspace)
    end(workspace, "approve")
    folder = workspace.storage / "_drawdown/hourly"
    assert "generations" not in pruned(workspace)
    assert (folder / "checkpoint-1/metadata").exists()
    assert pruned(workspace, previous=True)["generations"]
    assert not (folder / "checkpoint-1/metadata").exists()
    assert rows(workspace) == sums(FIRST + SECOND, "02T09")
    with pytest.raises(RefusedError) as refused:
        end(workspace, "rollback")
    assert refused.value.id == "rebuild.pruned"
    land(workspace, 2, THIRD)
    assert workspace.run("hourly").generation == 2


def pruned(workspace: Workspace, *, previous: bool = False) -> dict[str, list[FileInfo]]:
    """What `drawdown checkpoint prune` removes."""
    project = workspace.project
    with workspace.metastore() as metastore:
        generation = Generation.of(project, load_pipeline(project, "hourly"), metastore)
        lease = metastore.acquire("hourly", "here", "p1", project.lease_ttl.delta)
        try:
            return prune(generation, lambda: lease, keep=3, previous=previous).removed
        finally:
            metastore.release(lease)
