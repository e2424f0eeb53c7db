"""What commit 5a70180 has written (tests/fixtures/release_5a70180): every later release goes on with it."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from drawdown.cli.main import app
from drawdown.drain.accept import accept
from drawdown.errors import AuditFailed, DrawdownError, RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.records import FINGERPRINT_FORMAT
from drawdown.recovery.request import RecoveryRequest, as_run
from drawdown.spec import load_pipeline
from drawdown.workspace import Generation, Workspace
from tests.support.command_line import answer, drawdown
from tests.support.older_release import CLOSED, OPEN, RELEASE, WRITTEN_AT, unpacked
from tests.support.sandbox import Sandbox
from tests.support.typed import typed

PAGE = Path(__file__).parents[2] / "docs/upgrading.md"


@pytest.fixture
def release(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    sandbox = unpacked(tmp_path / "project", spark)
    monkeypatch.chdir(sandbox.root)
    typed("metastore upgrade")
    typed(f"checkpoint move clicks --from {WRITTEN_AT}")
    return sandbox


def land_later(sandbox: Sandbox) -> None:
    sandbox.land_json("landing/clicks/c.json", [{"at": "2026-01-01T10:09:00Z", "page": "a"}])


def windows(sandbox: Sandbox) -> list[tuple[str, str, int]]:
    return [(f"{minute:%H:%M}", page, clicks) for minute, page, clicks in sandbox.delta("tables/clicks")]


@pytest.mark.capability("OWN-02")
def test_the_release_before_is_drained_on_with_the_state_it_left(release: Sandbox) -> None:
    runs = answer(typed("runs clicks --json"))
    assert [run["state"] for run in runs] == ["succeeded"] * 3, "two drains and the move"
    with release.metastore() as metastore:
        before = metastore.active_checkpoint("clicks")
        assert before is not None
        assert "format" not in before.fingerprint, "what the release wrote; else this test shows nothing"
    land_later(release)
    assert release.run("clicks").counts.read == 1
    assert windows(release) == [*CLOSED, *OPEN]
    with release.metastore() as metastore:
        after = metastore.active_checkpoint("clicks")
    assert after is not None
    new = {"format": FINGERPRINT_FORMAT, "sink.name": "clicks"}
    assert after.fingerprint == {**before.fingerprint, **new}


def noted(sandbox: Sandbox, **changes: object) -> None:
    """Let the checkpoint's fingerprint say this."""
    with sandbox.metastore() as metastore:
        checkpoint = metastore.active_checkpoint("clicks")
        assert checkpoint is not None
        lease = metastore.acquire("clicks", "a test", "a-run", sandbox.project.lease_ttl.delta)
        new = {**checkpoint.fingerprint, **changes}
        metastore.update_fingerprint(lease, checkpoint.generation, new)
        metastore.release(lease)


def in_other_words(text: str) -> dict[str, object]:
    """What another Spark might have noted of the same query."""
    kept = {
        "operator": "aggregate",
        "values": [text],
        "keys": ["window(clicks.at, 1 minute)", "clicks.page string"],
    }
    return {"versions": {"spark": "4.1.0", "delta": "4.0.0", "drawdown": "0.1.0"}, "state.kept": [kept]}


def accept_it(sandbox: Sandbox) -> list[str]:
    assert sandbox.spark is not None
    spark = sandbox.spark
    with sandbox.metastore() as metastore:
        project = sandbox.project
        generation = Generation.of(Workspace(project, metastore), load_pipeline(project, "clicks"))
        request = RecoveryRequest(
            "accept", f"run-{datetime.now(UTC):%f}", "a test", "ann", "Spark 4.2 writes 1 for *"
        )
        return as_run(generation, request, lambda lease: accept(spark, generation, lease), "; ".join)


def test_other_words_of_another_version_are_refused_until_they_are_accepted(release: Sandbox) -> None:
    noted(release, **in_other_words("count(*) bigint"))
    land_later(release)
    error = release.drain("clicks")[0].error
    assert error is not None
    assert (error.id, "drawdown checkpoint accept clicks" in error.do) == ("checkpoint.changed", True)
    (said,) = accept_it(release)
    assert said.startswith("state.kept was count(*)")
    assert release.run("clicks").counts.read == 1
    assert windows(release) == [*CLOSED, *OPEN]
    with release.metastore() as metastore:
        run = next(run for run in metastore.runs("clicks") if run.kind == "accept")
    assert (run.state, run.origin["by"], run.origin["why"]) == (
        "succeeded",
        "ann",
        "Spark 4.2 writes 1 for *",
    )
    with pytest.raises(RefusedError, match=r"accept\.nothing"):
        accept_it(release)


def test_another_meaning_is_not_accepted_and_nothing_is_noted(release: Sandbox) -> None:
    noted(release, **in_other_words("max(clicks.at) timestamp"))
    before = fingerprint(release)
    with pytest.raises(RefusedError, match=r"accept\.meaning"):
        accept_it(release)
    assert fingerprint(release) == before
    # By its own words it is the same, and the query is another.
    noted(release, **in_other_words("count(*) bigint"))
    (release.root / "include/pipelines/clicks/transform.sql").write_text(
        "SELECT window.start AS minute, page, count(*) AS clicks\nFROM clicks WHERE page <> 'c'\n"
        "GROUP BY window(at, '1 minute'), page\n"
    )
    with pytest.raises(RefusedError, match=r"accept\.meaning"):
        accept_it(release)


def test_an_older_spark_than_the_last_is_refused(release: Sandbox) -> None:
    noted(release, versions={"spark": "5.0.0", "delta": "4.4.0", "drawdown": "0.1.0"})
    land_later(release)
    before = release.snapshot()
    error = release.drain("clicks")[0].error
    assert error is not None
    assert (error.id, "older Spark" in error.what) == ("checkpoint.changed", True)
    assert release.snapshot() == before
    with pytest.raises(RefusedError, match=r"accept\.meaning"):
        accept_it(release)


def test_a_fingerprint_of_a_newer_format_is_refused(release: Sandbox) -> None:
    noted(release, format=FINGERPRINT_FORMAT + 1)
    land_later(release)
    before = release.snapshot()
    error = release.drain("clicks")[0].error
    assert error is not None
    assert error.id == "checkpoint.newer-format"
    assert release.snapshot() == before
    done = CliRunner().invoke(app, ["checkpoint", "show", "clicks"])
    assert isinstance(done.exception, DrawdownError)
    assert done.exception.id == "checkpoint.newer-format"


def fingerprint(sandbox: Sandbox) -> dict[str, object]:
    with Metastore.open(sandbox.project.metastore_url) as metastore:
        checkpoint = metastore.active_checkpoint("clicks")
    assert checkpoint is not None
    return checkpoint.fingerprint


@pytest.mark.capability("OWN-02")
@pytest.mark.full
def test_the_commands_of_the_page_upgrade_it(release: Sandbox) -> None:
    land_later(release)
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines()]
    assert len(commands) >= 6
    for command in commands:
        if "accept" in command:
            noted(release, **in_other_words("count(*) bigint"))
        words = shlex.split(command.replace("NAME", "clicks"))
        done = drawdown(release.root, *words[1:])
        assert done.returncode == 0, f"{command}: {done.stdout} {done.stderr}"
    assert windows(release) == [*CLOSED, *OPEN]


LAST_BEFORE_ROOMS = RELEASE.with_name("release_a078040")
"""A held slice, a row that was set aside and a snapshot, written by the last commit before modules moved."""


@pytest.mark.capability("OWN-02")
def test_a_held_slice_a_quarantine_and_a_snapshot_of_before_go_on(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = unpacked(tmp_path / "project", spark, LAST_BEFORE_ROOMS)
    monkeypatch.chdir(sandbox.root)
    typed("metastore upgrade")
    moved = "checkpoint move clicks --from /tmp/release_a078040/project/storage"
    typed(moved)
    assert typed("checkpoint verify clicks")
    sandbox.land_json("landing/clicks/d.json", [{"at": "2026-01-01T10:12:00Z", "page": "a"}])
    assert sandbox.run("clicks").counts.read == 1
    assert windows(sandbox) == CLOSED, "a slice waits for a decision"
    typed("release clicks --why known")
    assert windows(sandbox) == [*CLOSED, *OPEN, ("10:05", "a", 3), ("10:08", "b", 1)]

    [row] = sandbox.quarantined("clicks")
    assert row["reasons"] == ["has_page"]
    assert '"open": 1' in typed("quarantine list clicks --json")
    typed("quarantine drop clicks --rule has_page --why known --yes")
    assert '"dropped": 1' in typed("quarantine list clicks --json")
    [snapshot] = answer(typed("checkpoint show clicks --json"))["snapshots"]
    typed(f"checkpoint restore clicks {snapshot['name']} --sink --why tried --yes")
    assert windows(sandbox) == CLOSED
    with pytest.raises(RefusedError, match=moved):
        sandbox.run("clicks")
    typed(moved)
    with pytest.raises(AuditFailed, match="max_value"):
        sandbox.run("clicks")
    with sandbox.metastore() as metastore:
        assert metastore.runs("clicks")[0].counts.read == 5, "all behind the snapshot, once more"
