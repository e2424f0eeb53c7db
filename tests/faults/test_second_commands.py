"""A second command amid a first one: it is refused, or finishes what the first has left."""

from __future__ import annotations

import shutil

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame

from drawdown.drain.attempt import Attempt
from drawdown.drain.run_context import RunContext
from drawdown.errors import RefusedError
from drawdown.quality.audit import GxAuditor
from drawdown.quality.outcome import AuditOutcome
from drawdown.replay.spark_replay import replay as replay_interval
from drawdown.spec import Pipeline, load_pipeline
from drawdown.values.interval import Interval
from drawdown.workspace import Workspace
from tests.support.armed import armed
from tests.support.command_line import drawdown
from tests.support.deaths import die, free_lease
from tests.support.recovering import refused
from tests.support.replays import drain_days, replayed
from tests.support.sandbox import Sandbox, multiset
from tests.support.set_aside import NAME, closed, fill, replay, states

DAY = "2024-01-02", "2024-01-03"


@pytest.mark.capability("RIGHT-06")
def test_a_replay_does_not_commit_amid_a_rewind_that_died(sandbox: Sandbox) -> None:
    drain_days(sandbox)
    wanted = multiset(sandbox.delta("tables/hourly"))
    with sandbox.metastore() as metastore:
        kept = 1  # of the first run
        workspace = Workspace(sandbox.project, metastore)
        rewind = f"checkpoint rewind --to {kept} --sink"

        def rewound_amid(rows: DataFrame, pipeline: Pipeline, count: int) -> AuditOutcome:
            die(sandbox, NAME, "before recovery.forget", rewind)
            return GxAuditor()(rows, pipeline, count)

        assert sandbox.spark is not None
        pipeline = load_pipeline(sandbox.project, NAME)
        attempt = Attempt(sandbox.spark, workspace, pipeline, rewound_amid, RunContext("r1", "test"))
        with pytest.raises(RefusedError) as amid:
            replay_interval(attempt, Interval.parse(*DAY))
    assert amid.value.id == "checkpoint.torn"
    assert f"`drawdown checkpoint rewind {NAME} --to {kept} --sink` completes it" in amid.value.do
    done = drawdown(sandbox.root, *rewind.split(), NAME)
    assert done.returncode == 0, done.stdout + done.stderr
    sandbox.drain(NAME)
    assert multiset(sandbox.delta("tables/hourly")) == wanted
    replayed(sandbox, *DAY)


@pytest.mark.capability("RIGHT-06")
def test_a_rewind_waits_for_no_replay_that_commits_at_this_moment(sandbox: Sandbox) -> None:
    drain_days(sandbox)
    with sandbox.metastore() as metastore:
        ttl = sandbox.project.lease_ttl.delta
        turn = metastore.acquire(f"{NAME}#replay", "here", "r1", ttl)
        before = sandbox.everything()
        done = drawdown(sandbox.root, "checkpoint", "rewind", NAME, "--to", "0", "--sink")
        assert (done.returncode, "lease.held" in done.stderr + done.stdout) == (4, True), (
            done.stdout + done.stderr
        )
        assert sandbox.everything() == before
        metastore.release(turn)


@pytest.mark.capability("RIGHT-06")
@pytest.mark.capability("RIGHT-04")
def test_a_rename_takes_a_replay_of_the_quarantine_along(sandbox: Sandbox) -> None:
    fill(sandbox)
    corrected = sandbox.root / f"include/pipelines/{NAME}/quality.yaml"
    corrected.write_text(corrected.read_text().replace("id < 90", "id < 100"))
    with armed("fail before replay.plan"), pytest.raises(Exception, match="unexpected"):
        replay(sandbox)
    free_lease(sandbox)
    assert states(sandbox)["95"] == "replaying"
    folder = sandbox.root / "include/pipelines"
    shutil.move(folder / NAME, folder / "renamed")
    spec = folder / "renamed/pipeline.yaml"
    spec.write_text(f"first_name: {NAME}\n{spec.read_text()}")
    done = drawdown(sandbox.root, "rename", NAME, "renamed", "--why", "a better name")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sandbox.run("renamed").counts.replayed == 2
    sandbox.land(
        "landing/events/z.csv", ["id,at,delay", "5,2024-01-01T13:00:00Z,1", "6,2024-01-01T13:10:00Z,1"]
    )
    sandbox.run("renamed")
    assert closed(sandbox) == [(10, 4, 24)]


@pytest.mark.capability("RIGHT-06")
def test_a_rename_closes_what_a_dead_backfill_has_left(sandbox: Sandbox) -> None:
    drain_days(sandbox)
    wanted = multiset(sandbox.delta("tables/hourly"))
    die(sandbox, NAME, "before replay.commit", f"backfill --from {DAY[0]} --to {DAY[1]}")
    folder = sandbox.root / "include/pipelines"
    shutil.move(folder / NAME, folder / "renamed")
    spec = folder / "renamed/pipeline.yaml"
    spec.write_text(f"first_name: {NAME}\n{spec.read_text()}")
    done = drawdown(sandbox.root, "rename", NAME, "renamed", "--why", "a better name")
    assert done.returncode == 0, done.stdout + done.stderr
    replayed(sandbox, *DAY, name="renamed")
    assert len(wanted) <= len(multiset(sandbox.delta("tables/hourly")))


@pytest.mark.capability("RIGHT-05")
def test_a_table_that_remembers_a_removed_pipeline_is_refused(sandbox: Sandbox) -> None:
    drain_days(sandbox)
    wanted = multiset(sandbox.delta("tables/hourly"))
    folder, aside = sandbox.root / f"include/pipelines/{NAME}", sandbox.root / "aside"
    shutil.move(folder, aside)
    removed = drawdown(sandbox.root, "remove", NAME, "--yes")
    assert removed.returncode == 0, removed.stdout + removed.stderr
    DeltaTable(str(sandbox.storage / "tables/hourly")).delete()
    shutil.move(aside, folder)
    error = refused(sandbox, "sink.not-ours")
    assert "delete the folder of the table" in error.do
    shutil.rmtree(sandbox.storage / "tables/hourly")
    sandbox.run(NAME)
    assert sum(row[2] for row in sandbox.delta("tables/hourly")) >= sum(
        row[2] * n for row, n in wanted.items()
    )


@pytest.mark.capability("RIGHT-06")
def test_a_renamed_pipeline_whose_metastore_is_lost_is_restored(sandbox: Sandbox) -> None:
    """Nothing is half renamed: only the database has forgotten it."""
    fill(sandbox)
    folder = sandbox.root / "include/pipelines"
    shutil.move(folder / NAME, folder / "renamed")
    spec = folder / "renamed/pipeline.yaml"
    spec.write_text(f"{spec.read_text()}\nfirst_name: {NAME}\n")
    for words in (["rename", NAME, "renamed", "--why", "x"], ["checkpoint", "snapshot", "renamed"]):
        done = drawdown(sandbox.root, *words)
        assert done.returncode == 0, done.stdout + done.stderr
    (sandbox.root / "metastore.db").unlink()
    done = drawdown(sandbox.root, "checkpoint", "restore", "renamed", "latest")
    assert done.returncode == 0, done.stdout + done.stderr
    sandbox.land("landing/events/z.csv", ["id,at,delay", "5,2024-01-01T13:00:00Z,1"])
    sandbox.run("renamed")
    assert closed(sandbox) == [(10, 2, 10)]
