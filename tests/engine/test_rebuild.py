"""A rebuild computes the output again beside the live drains, and is swapped in by one commit."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame

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
from tests.support.sandbox import Sandbox

FIRST = [event("02T06:10", 1), event("02T06:20", 2, "b"), event("02T07:30", 4)]
SECOND = [event("02T08:10", 8, "b"), event("02T09:10", 16)]
THIRD = [event("02T09:50", 32, "b"), event("02T11:10", 64)]
FOURTH = [event("02T11:50", 128, "b"), event("02T13:10", 256)]


def test_a_rebuild_with_another_grouping_key_goes_live_while_drains_go_on(sandbox: Sandbox) -> None:
    with (sandbox.root / "include" / "project.yaml").open("a") as project:
        project.write("samples: [total]\n")
    live_version(sandbox)
    land(sandbox, 1, FIRST)
    sandbox.run("hourly")
    land(sandbox, 2, SECOND)
    sandbox.run("hourly")
    next_version(sandbox)
    run = rebuilt(sandbox)
    assert (run.kind, run.state, run.generation, run.batches) == ("rebuild", "succeeded", 2, 3)
    assert run.counts.read == len(FIRST + SECOND)
    assert rows(sandbox) == sums(FIRST + SECOND, "02T09", by_key=False), "readers see nothing of it"
    found = comparison(sandbox)
    assert found["columns"] == {"added": ["k"], "removed": [], "retyped": []}
    assert (found["rows"], found["late"]) == ({"live": 3, "shadow": 4}, {"live": 0, "shadow": 0})
    assert (found["only_live"], found["only_shadow"]) == (1, 2), "06:00 is split by key"
    assert [each["row"] for each in found["sample"]] == [{"total": 1}, {"total": 2}, {"total": 3}]
    aggregates = found["aggregates"]["live"]
    assert [name for name, said in aggregates.items() if "max" in said] == ["total"], "a maximum is of a row"

    land(sandbox, 3, THIRD)
    assert sandbox.run("hourly").generation == 1, "the live one goes on with the old version"
    assert rows(sandbox) == sums(FIRST + SECOND + THIRD, "02T11", by_key=False)
    again = rebuilt(sandbox)
    assert again.counts.read == len(THIRD), "it goes on where it stopped"

    version = DeltaTable(str(sandbox.storage / "tables/hourly")).version()
    swapped = end(sandbox, "approve")
    assert (swapped.kind, swapped.generation, swapped.origin["by"]) == ("rebuild-swap", 2, "ada")
    assert rows(sandbox) == sums(FIRST + SECOND + THIRD, "02T11")
    assert DeltaTable(str(sandbox.storage / "tables/hourly")).version() == version + 1, "one commit"
    assert sandbox.drain("hourly")[0].run is None, "nothing is new"

    land(sandbox, 4, FOURTH)
    run = sandbox.run("hourly")
    assert (run.generation, run.counts.read) == (2, len(FOURTH)), "drains go on with the new version"
    assert rows(sandbox) == sums(FIRST + SECOND + THIRD + FOURTH, "02T13")

    back = end(sandbox, "rollback")
    assert back.generation == 1
    assert rows(sandbox) == sums(FIRST + SECOND + THIRD, "02T11", by_key=False)
    run = sandbox.run("hourly")
    assert (run.generation, run.counts.read) == (1, len(FOURTH)), "it reads again what came since the swap"
    assert rows(sandbox) == sums(FIRST + SECOND + THIRD + FOURTH, "02T13", by_key=False)


def test_a_replay_during_which_a_rebuild_is_swapped_in_goes_on_with_its_version(sandbox: Sandbox) -> None:
    """And with the folder's when it was rolled back: what is written is of the version in use."""
    closing = [event("04T00:10"), event("04T01:10")]
    live_version(sandbox, REPLAYED)
    land(sandbox, 1, FIRST + closing)
    sandbox.run("hourly")
    next_version(sandbox, REPLAYED)
    rebuilt(sandbox)
    for choice, by_key in (("approve", True), ("rollback", False)):

        def end_then_audit(
            rows: DataFrame, pipeline: Pipeline, count: int, choice: str = choice
        ) -> AuditOutcome:
            with sandbox.metastore() as metastore:
                ended = [run for run in metastore.runs("hourly") if run.kind == KINDS[choice]]
            if not ended:
                end(sandbox, choice)
            return GxAuditor()(rows, pipeline, count)

        with sandbox.metastore() as metastore:
            used = in_use(Workspace(sandbox.project, metastore), load_pipeline(sandbox.project, "hourly"))
            day = Interval.parse("2024-01-02", "2024-01-03")
            context = RunContext(f"replay-{choice}", "test")
            workspace = Workspace(sandbox.project, metastore)
            assert replay(sandbox.spark, workspace, used, end_then_audit, day, context).generation == (
                2 if by_key else 1
            )  # type: ignore[arg-type]
        assert rows(sandbox) == sums(FIRST + closing, "04T01", by_key=by_key)


@pytest.mark.full
def test_keys_are_compared_by_their_rows_and_merged_after_the_swap(sandbox: Sandbox) -> None:
    live_version(sandbox, UPDATE)
    land(sandbox, 1, FIRST)
    sandbox.run("hourly")
    next_version(sandbox, UPDATE.replace("keys: [hour]", "keys: [hour, k]"))
    # The old version has no k: by what both have, the hour alone is the key.
    rebuilt(sandbox)
    found = comparison(sandbox)
    assert (found["only_live"], found["only_shadow"], found["changed"]) == (0, 0, 1)
    assert not list((sandbox.storage / "_drawdown/hourly/staged").rglob("*/_rebuild/2/*.parquet"))
    end(sandbox, "approve")
    assert rows(sandbox) == sums(FIRST, "02T09")
    land(sandbox, 2, [*SECOND, event("02T07:40", 100)])
    sandbox.run("hourly")
    assert rows(sandbox) == sums([*FIRST, *SECOND, event("02T07:40", 100)], "02T10")


@pytest.mark.full
def test_a_drain_in_the_midst_of_a_rebuild_disturbs_neither(sandbox: Sandbox) -> None:
    """Both have staged rows, and rows that were set aside, which nobody sees yet."""
    live_version(sandbox, UPDATE)
    land(sandbox, 1, FIRST)
    sandbox.run("hourly")
    next_version(sandbox, UPDATE.replace("keys: [hour]", "keys: [hour, k]"))
    land(sandbox, 2, SECOND)
    sandbox.land("landing/events/3.json", ["{broken"])

    def drain_then_audit(rows: DataFrame, pipeline: Pipeline, count: int) -> AuditOutcome:
        assert sandbox.run("hourly").generation == 1
        return GxAuditor()(rows, pipeline, count)

    assert sandbox.spark is not None
    with sandbox.metastore() as metastore:
        workspace = Workspace(sandbox.project, metastore)
        run = rebuild(
            sandbox.spark,
            workspace,
            wanted(sandbox.project, "hourly"),
            drain_then_audit,
            RunContext("r1", "test"),
        )
    assert (run.generation, run.counts.malformed) == (2, 1)
    assert rows(sandbox) == sums(FIRST + SECOND, "02T10", by_key=False)
    assert [row["generation"] for row in sandbox.quarantined("hourly")] == [1]
    end(sandbox, "approve")
    assert rows(sandbox) == sums(FIRST + SECOND, "02T10")
    assert [row["generation"] for row in sandbox.quarantined("hourly")] == [2]


@pytest.mark.full
def test_the_folder_itself_is_the_new_version_without_a_next_one(sandbox: Sandbox) -> None:
    live_version(sandbox)
    land(sandbox, 1, FIRST + SECOND)
    sandbox.run("hourly")
    next_version(sandbox, folder="hourly")
    land(sandbox, 2, THIRD)
    with pytest.raises(RefusedError, match="no longer fits its checkpoint"):
        sandbox.run("hourly")
    rebuilt(sandbox)
    end(sandbox, "approve")
    assert rows(sandbox) == sums(FIRST + SECOND + THIRD, "02T11")
    land(sandbox, 3, FOURTH)
    sandbox.run("hourly")
    assert rows(sandbox) == sums(FIRST + SECOND + THIRD + FOURTH, "02T13")


@pytest.mark.full
def test_rows_that_are_set_aside_are_listed_once_before_and_after_the_swap(sandbox: Sandbox) -> None:
    live_version(sandbox)
    sandbox.land("landing/events/1.json", ['{"at": "2024-01-02T06:10:00Z", "n": 1}', "{broken"])
    sandbox.run("hourly")
    next_version(sandbox)
    rebuilt(sandbox)
    assert [row["generation"] for row in sandbox.quarantined("hourly")] == [1]
    end(sandbox, "approve")
    assert [row["generation"] for row in sandbox.quarantined("hourly")] == [2]
    end(sandbox, "rollback")
    assert [row["generation"] for row in sandbox.quarantined("hourly")] == [1]


@pytest.mark.full
def test_prune_leaves_what_a_roll_back_needs_until_it_is_told(sandbox: Sandbox) -> None:
    live_version(sandbox)
    land(sandbox, 1, FIRST + SECOND)
    sandbox.run("hourly")
    next_version(sandbox)
    rebuilt(sandbox)
    end(sandbox, "approve")
    folder = sandbox.storage / "_drawdown/hourly"
    assert "generations" not in pruned(sandbox)
    assert (folder / "checkpoint-1/metadata").exists()
    assert pruned(sandbox, previous=True)["generations"]
    assert not (folder / "checkpoint-1/metadata").exists()
    assert rows(sandbox) == sums(FIRST + SECOND, "02T09")
    with pytest.raises(RefusedError) as refused:
        end(sandbox, "rollback")
    assert refused.value.id == "rebuild.pruned"
    land(sandbox, 2, THIRD)
    assert sandbox.run("hourly").generation == 2


def pruned(sandbox: Sandbox, *, previous: bool = False) -> dict[str, list[FileInfo]]:
    """What `drawdown checkpoint prune` removes."""
    project = sandbox.project
    with sandbox.metastore() as metastore:
        generation = Generation.of(Workspace(project, metastore), load_pipeline(project, "hourly"))
        lease = metastore.acquire("hourly", "here", "p1", project.lease_ttl.delta)
        try:
            return prune(generation, lambda: lease, keep=3, previous=previous).removed
        finally:
            metastore.release(lease)
