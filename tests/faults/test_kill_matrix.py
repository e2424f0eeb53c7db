"""A drain that dies at any step of a run, then one that goes on, on every kind of sink.

Driver and JVM are killed together before or after each durable step. Then rows, quarantine, batches, counts
and files are those of a control that never died, and one more run is a no-op. `make test` strikes once
for each fault on Delta and once on each other kind of sink; `make test-all` at every step of every kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from drawdown.fault_points import STEPS
from tests.support.bucket_sandbox import only_here
from tests.support.deaths import die, run_apart
from tests.support.kill_matrix import (
    KINDS,
    NAME,
    Ended,
    assert_one_more_run_is_a_no_op,
    ended,
    land,
)
from tests.support.sandbox import Sandbox

FAULTS = {
    "lease.take": "F01",
    "run.open": "F01",
    "checkpoint.note": "F01",
    "past.settle": "F01",
    "query.start": "F01",
    "batch.files": "F02",
    "batch.stage": "F04",
    "batch.reject": "F04",
    "batch.note": "F04",
    "batch.show": "F04",
    "batch.end": "F04",
    "commits.note": "F06",
    "quarantine.publish": "F06",
    "verdict.note": "F06",
    "publish.copy": "F07",
    "publish.commit": "F07",
    "publish.send": "F07",
    "publish.file": "F07",
    "publish.note": "F07",
    "run.close": "F07",
}
"""Which row of the matrix a death around each step is."""
BATCH_STEPS = [step for step in STEPS if step.startswith("batch.")]

Control = Callable[[str, int], Ended]
Make = Callable[[str, Path], Sandbox]


@pytest.fixture
def make(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Make]:
    """An empty project of a kind; the server that it needs is started then."""

    def project(kind: str, root: Path) -> Sandbox:
        server = KINDS[kind].server
        return KINDS[kind].project(root, spark, request.getfixturevalue(server) if server else None)

    with only_here(spark):
        yield project


KNOWN: dict[tuple[str, int], Ended] = {}


@pytest.fixture
def control(tmp_path_factory: pytest.TempPathFactory, make: Make) -> Control:
    """What a project of a kind has come to after so many waves, when no run has died; made once."""

    def after(kind: str, waves: int) -> Ended:
        if (kind, waves) not in KNOWN:
            sandbox = make(kind, tmp_path_factory.mktemp("control") / "project")
            for wave in range(waves):
                land(sandbox, wave)
                sandbox.run(NAME)
                KNOWN[kind, wave + 1] = ended(KINDS[kind], sandbox)
        return KNOWN[kind, waves]

    return after


def moment(when: str, step: str) -> str:
    """In the second batch, where there is one before it to be left alone."""
    return f"{when} {step}{' 2' if step in BATCH_STEPS else ''}"


def dies_and_goes_on(kind: str, root: Path, make: Make, moments: list[str], control: Control) -> None:
    control(kind, len(moments))
    sandbox = make(kind, root)
    for wave, where in enumerate(moments):
        land(sandbox, wave)
        die(sandbox, NAME, where)
        goes_on(kind, sandbox, control(kind, wave + 1), where)
    assert_one_more_run_is_a_no_op(sandbox)


def goes_on(kind: str, sandbox: Sandbox, expected: Ended, where: str) -> None:
    if KINDS[kind].appends:
        assert KINDS[kind].rows(sandbox) <= expected.rows, f"{where}: readers saw what they should not"
    sandbox.drain(NAME)
    found = ended(KINDS[kind], sandbox)
    for part in Ended.__annotations__:
        assert getattr(found, part) == getattr(expected, part), f"{part} after death {where}"
    assert expected.rows
    assert expected.rejected
    with sandbox.metastore() as metastore:
        states = {run.state for run in metastore.runs(NAME)}
    assert "running" not in states, "the record says that a run died"


@pytest.mark.parametrize(
    "where",
    [
        pytest.param("before query.start", marks=pytest.mark.fault("F01", "delta")),
        pytest.param("after commits.note", marks=pytest.mark.fault("F06", "delta")),
        pytest.param("after publish.commit", marks=pytest.mark.fault("F07", "delta")),
    ],
)
def test_a_run_on_delta_goes_on_where_one_was_killed(
    tmp_path: Path, make: Make, control: Control, where: str
) -> None:
    kind = "delta append audited"
    dies_and_goes_on(kind, tmp_path / "project", make, [where], control)


@pytest.mark.capability("OBJ-12")
@pytest.mark.parametrize(
    "where", ["after batch.end 2", pytest.param("after publish.commit", marks=pytest.mark.full)]
)
def test_a_run_in_a_bucket_goes_on_where_one_was_killed(
    tmp_path: Path, make: Make, control: Control, where: str
) -> None:
    dies_and_goes_on("delta append audited in a bucket", tmp_path / "project", make, [where], control)


@pytest.mark.fault("F02", "delta")
def test_a_run_on_delta_goes_on_where_one_failed_before_its_sink(
    tmp_path: Path, make: Make, control: Control
) -> None:
    kind = "delta append audited"
    sandbox = make(kind, tmp_path / "project")
    land(sandbox, 0)
    failed = run_apart(sandbox, NAME, "fail before batch.stage 2")
    assert failed.returncode == 1, failed.stdout
    with sandbox.metastore() as metastore:
        [run] = metastore.runs(NAME)
    assert (run.state, run.batches) == ("failed", 1)
    assert run.error is not None
    assert "batch.stage" in run.error["what"]
    goes_on(kind, sandbox, control(kind, 1), "fail before batch.stage 2")
    assert_one_more_run_is_a_no_op(sandbox)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            name,
            marks=[pytest.mark.fault("F04", kind.sink), *([pytest.mark.full] if "complete" in name else [])],
        )
        for name, kind in KINDS.items()
        if name in ("delta update audited", "delta complete direct", "parquet files")
    ],
)
def test_a_batch_that_a_dead_run_wrote_is_there_once_in_every_kind_of_sink(
    tmp_path: Path, make: Make, control: Control, kind: str
) -> None:
    dies_and_goes_on(kind, tmp_path / "project", make, ["after batch.end 2"], control)


@pytest.mark.fault("F01", "delta")
@pytest.mark.fault("F04", "delta")
@pytest.mark.full
def test_a_run_goes_on_where_three_died_one_after_the_other(
    tmp_path: Path, make: Make, control: Control
) -> None:
    kind = "delta append audited"
    sandbox = make(kind, tmp_path / "project")
    land(sandbox, 0)
    for where in ("after query.start", "after batch.note 1", "after batch.stage 2"):
        die(sandbox, NAME, where)
    goes_on(kind, sandbox, control(kind, 1), "three times")


def every_step() -> Iterator[Any]:
    for name, kind in KINDS.items():
        for step, fault in FAULTS.items():
            if step not in kind.passes_by:
                marks = [pytest.mark.full, pytest.mark.fault(fault, kind.sink)]
                if kind.server == "s3":
                    marks += [pytest.mark.capability("OBJ-12")]
                yield pytest.param(name, step, marks=marks, id=f"{name} - {step}")


def test_every_step_is_struck_at() -> None:
    assert list(FAULTS) == list(STEPS)


@pytest.mark.parametrize(("kind", "step"), list(every_step()))
def test_a_run_goes_on_where_one_was_killed_before_or_after_a_step(
    tmp_path: Path, make: Make, control: Control, kind: str, step: str
) -> None:
    moments = [moment("before", step), moment("after", step)]
    dies_and_goes_on(kind, tmp_path / "project", make, moments, control)
