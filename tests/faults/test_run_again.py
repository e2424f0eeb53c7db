"""A run that is done again: after one that succeeded, and after an audit that crashed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.application import NOTHING_NEW, SparkApplication
from drawdown.errors import AuditFailed
from drawdown.spec import load_pipeline
from drawdown.workspace import Workspace
from tests.support.kill_matrix import (
    FILES,
    KINDS,
    NAME,
    assert_one_more_run_is_a_no_op,
    ended,
    land,
)

CRASHES = """
expectations: [{type: expect_column_values_to_match_regex, kwargs: {column: hour, regex: "("}}]
"""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("delta append audited", marks=pytest.mark.fault("F34", "delta")),
        pytest.param("parquet files", marks=[pytest.mark.full, pytest.mark.fault("F34", "files")]),
    ],
)
def test_a_task_that_is_run_again_after_it_succeeded_starts_no_spark_and_says_so(
    tmp_path: Path, spark: SparkSession, name: str
) -> None:
    sandbox = KINDS[name].project(tmp_path / "project", spark)
    land(sandbox, 0)
    sandbox.run(NAME)
    rows, before = KINDS[name].rows(sandbox), sandbox.snapshot()

    project, asked = sandbox.project, {"dag_id": "hourly", "dag_run_id": "manual__1", "try_number": 2}
    with sandbox.metastore() as metastore:
        # Without a session to use, a start of Spark would show.
        again = SparkApplication(Workspace(project, metastore), origin=asked, note_idle=True)
        [report] = again.drain_all([load_pipeline(project, NAME)])
        [noted, first] = metastore.runs(NAME)
        assert metastore.holder_of(NAME) is None
    assert (report.run, report.error) == (None, None)
    assert (noted.state, noted.stop_reason, noted.batches) == ("succeeded", NOTHING_NEW, 0)
    assert noted.origin == asked
    assert first.stop_reason != NOTHING_NEW
    assert sandbox.snapshot() == before
    assert KINDS[name].rows(sandbox) == rows


@pytest.mark.fault("F35", "delta")
def test_an_audit_that_crashes_publishes_nothing_and_the_next_run_audits_the_same_slice(
    tmp_path: Path, spark: SparkSession
) -> None:
    kind = KINDS["delta append audited"]
    control = kind.project(tmp_path / "control", spark)
    sandbox = kind.project(tmp_path / "project", spark)
    for each in (control, sandbox):
        land(each, 0)
    quality = sandbox.root / "include" / "pipelines" / NAME / "quality.yaml"
    quality.write_text(FILES["quality_yaml"] + CRASHES)
    control.run(NAME)

    with pytest.raises(AuditFailed) as crashed:
        sandbox.run(NAME)
    assert crashed.value.id == "audit.error"
    assert kind.rows(sandbox) == {}
    quality.write_text(FILES["quality_yaml"])
    sandbox.run(NAME)

    with sandbox.metastore() as metastore:
        [passed, error] = metastore.verdicts(NAME)
        states = [(run.state, run.verdict) for run in metastore.runs(NAME)]
    assert (error.outcome, passed.outcome) == ("error", "pass")
    assert (passed.first_batch, passed.last_batch) == (error.first_batch, error.last_batch)
    assert states == [("succeeded", "pass"), ("failed", "error")]
    assert ended(kind, sandbox) == ended(kind, control)
    assert_one_more_run_is_a_no_op(sandbox)
