"""Files of a checkpoint that are torn or gone: the error names file and command; the command fixes it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.command_line import drawdown
from tests.support.deaths import die
from tests.support.recovering import (
    CHECKPOINT,
    NAME,
    Result,
    fix,
    goes_on_like,
    keep,
    land,
    newest,
    project,
    put_back,
    refused,
    result,
    tear,
)
from tests.support.sandbox import Sandbox


@pytest.fixture(scope="module")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Sandbox, Path, Result]:
    """Two waves drained, then a snapshot, then a third wave has come; what a run makes of that."""
    sandbox = project(tmp_path_factory.mktemp("torn") / "project", spark, "delta")
    for wave in range(2):
        land(sandbox, wave)
        sandbox.run(NAME)
    assert drawdown(sandbox.root, "checkpoint", "snapshot", NAME).returncode == 0
    land(sandbox, 2)
    copy = keep(sandbox)
    sandbox.run(NAME)
    return sandbox, copy, result(sandbox)


@pytest.fixture
def drained(kept: tuple[Sandbox, Path, Result]) -> Sandbox:
    sandbox, copy, _ = kept
    put_back(sandbox, copy)
    return sandbox


@pytest.fixture
def control(kept: tuple[Sandbox, Path, Result]) -> Result:
    return kept[2]


def _torn_offsets(checkpoint: Path) -> Path:
    tear(newest(checkpoint / "offsets"))
    return newest(checkpoint / "offsets")


def _empty_commit(checkpoint: Path) -> Path:
    newest(checkpoint / "commits").write_bytes(b"")
    return newest(checkpoint / "commits")


def _torn_source(checkpoint: Path) -> Path:
    tear(newest(checkpoint / "sources/0"))
    return newest(checkpoint / "sources/0")


def _no_metadata(checkpoint: Path) -> Path:
    (checkpoint / "metadata").unlink()
    return checkpoint / "metadata"


def _torn_metadata(checkpoint: Path) -> Path:
    tear(checkpoint / "metadata")
    return checkpoint / "metadata"


def _stale_checksum(checkpoint: Path) -> Path:
    """As somebody leaves it who fixes a log file with an editor."""
    file = newest(checkpoint / "commits")
    older = file.with_name(f".{int(file.name) - 1}.crc")
    file.with_name(f".{file.name}.crc").write_bytes(older.read_bytes()[:-1] + b"!")
    return file


def _torn_state(checkpoint: Path) -> Path:
    changes = (checkpoint / "state/0/1").glob("*.changelog")
    file = max(changes, key=lambda path: int(path.stem))
    tear(file)
    return file


def _no_state(checkpoint: Path) -> Path:
    shutil.rmtree(checkpoint / "state")
    return checkpoint / "state"


def _no_partition(checkpoint: Path) -> Path:
    shutil.rmtree(checkpoint / "state/0/1")
    return checkpoint / "state/0/1"


@pytest.mark.parametrize(
    ("break_it", "error_id", "said", "command"),
    [
        pytest.param(
            _torn_offsets, "checkpoint.torn", "not JSON", "repair", marks=pytest.mark.fault("F11", "delta")
        ),
        pytest.param(
            _empty_commit,
            "checkpoint.torn",
            "it is empty",
            "repair",
            marks=[pytest.mark.fault("F11", "delta"), pytest.mark.full],
        ),
        pytest.param(
            _torn_source,
            "checkpoint.torn",
            "not JSON",
            "restore",
            marks=[pytest.mark.fault("F11", "delta"), pytest.mark.full],
        ),
        pytest.param(
            _no_metadata,
            "checkpoint.metadata-missing",
            "the file with the query's id is missing",
            "repair",
            marks=pytest.mark.fault("F12", "delta"),
        ),
        pytest.param(
            _torn_metadata,
            "checkpoint.torn",
            "not JSON",
            "repair",
            marks=[pytest.mark.fault("F12", "delta"), pytest.mark.full],
        ),
        pytest.param(
            _stale_checksum,
            "checkpoint.torn",
            "its checksum does not match",
            "repair",
            marks=[pytest.mark.fault("F13", "delta"), pytest.mark.full],
        ),
        pytest.param(
            _torn_state,
            "checkpoint.torn",
            "operator 0, partition 1, version ",
            "restore",
            marks=pytest.mark.fault("F14", "delta"),
        ),
        pytest.param(
            _no_state,
            "checkpoint.torn",
            "the state folder of the query is missing",
            "restore",
            marks=[pytest.mark.fault("F14", "delta"), pytest.mark.full],
        ),
        pytest.param(
            _no_partition,
            "checkpoint.torn",
            "operator 0, partition 1: there is no file of version ",
            "restore",
            marks=[pytest.mark.fault("F14", "delta"), pytest.mark.full],
        ),
    ],
)
def test_a_torn_file_is_named_with_the_command_that_fixes_it(
    drained: Sandbox,
    control: Result,
    break_it: Callable[[Path], Path],
    error_id: str,
    said: str,
    command: str,
) -> None:
    file = break_it(drained.storage / CHECKPOINT)
    error = refused(drained, error_id)
    assert error.where == str(file)
    assert said in error.what
    assert f"`drawdown checkpoint {command} {NAME}" in error.do
    fix(drained, error.do)
    goes_on_like(drained, control)


def test_state_of_other_bytes_without_a_checksum_is_what_spark_cannot_read(
    drained: Sandbox, control: Result
) -> None:
    """As on storage that keeps no checksums: the file has its whole form."""
    changes = (drained.storage / CHECKPOINT / "state/0").glob("[01]/*.changelog")
    file = max(changes, key=lambda path: path.stat().st_size)
    content = bytearray(file.read_bytes())
    content[50] ^= 0xFF
    file.write_bytes(content)
    file.with_name(f".{file.name}.crc").unlink()
    shown = drained.delta("tables/hourly")
    error = refused(drained, "checkpoint.unreadable")
    assert "Stream is corrupted" in error.what
    assert drained.delta("tables/hourly") == shown
    fix(drained, error.do)
    goes_on_like(drained, control)


@pytest.mark.full
@pytest.mark.fault("F11", "delta")
@pytest.mark.parametrize(
    "moment", ["before batch.stage 1", pytest.param("after batch.note 1", marks=pytest.mark.full)]
)
def test_torn_offsets_of_a_batch_that_died_are_planned_or_read_again(
    drained: Sandbox, control: Result, moment: str
) -> None:
    die(drained, NAME, moment)
    file = newest(drained.storage / CHECKPOINT / "offsets")
    tear(file)
    error = refused(drained, "checkpoint.torn")
    assert error.where == str(file)
    fix(drained, error.do)
    assert file.exists() == moment.startswith("after"), "noted offsets are written again"
    goes_on_like(drained, control)


@pytest.mark.fault("F16", "delta")
def test_a_checkpoint_that_is_gone_comes_back_from_its_snapshot(drained: Sandbox, control: Result) -> None:
    shutil.rmtree(drained.storage / CHECKPOINT)
    error = refused(drained, "checkpoint.missing")
    fix(drained, error.do)
    goes_on_like(drained, control)


@pytest.mark.fault("F14", "delta")
def test_without_a_snapshot_state_is_rewound_to_where_it_is_whole(drained: Sandbox, control: Result) -> None:
    shutil.rmtree(drained.storage / f"_drawdown/{NAME}/snapshots")
    _torn_state(drained.storage / CHECKPOINT)
    error = refused(drained, "checkpoint.torn")
    assert f"`drawdown checkpoint rewind {NAME} --to " in error.do
    fix(drained, error.do)
    goes_on_like(drained, control)


def test_a_restore_that_was_cut_off_is_completed_by_the_same_command(
    drained: Sandbox, control: Result
) -> None:
    [snapshot] = (drained.storage / f"_drawdown/{NAME}/snapshots").iterdir()
    checkpoint = drained.storage / CHECKPOINT
    shutil.rmtree(checkpoint / "state")
    shutil.rmtree(checkpoint / "commits")
    (checkpoint / "restoring").write_text(snapshot.name)
    error = refused(drained, "checkpoint.torn")
    assert "a restore was cut off before its end" in error.what
    fix(drained, error.do)
    goes_on_like(drained, control)
