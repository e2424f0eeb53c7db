"""A driver that is frozen before it commits, and wakes up behind a rewind or a restore, commits nothing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.command_line import drawdown
from tests.support.frozen import frozen
from tests.support.kill_matrix import KINDS, NAME, Kind, Rows, land
from tests.support.recovering import checkpoint
from tests.support.row_by_row import Rows as RowByRow
from tests.support.sandbox import Sandbox
from tests.support.stale import move_lease

pytestmark = pytest.mark.capability("RIGHT-06")
FULL = pytest.mark.full


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        pytest.param("delta append audited", "before publish.commit"),
        pytest.param("delta append direct", "before batch.show", marks=FULL),
        pytest.param("delta update audited", "before publish.commit", marks=FULL),
        pytest.param("postgres append", "before publish.copy", marks=FULL),
        pytest.param("postgres update", "before publish.commit", marks=FULL),
        pytest.param("parquet files", "before batch.stage", marks=FULL),
        pytest.param("kafka", "before publish.send", marks=FULL),
    ],
)
@pytest.mark.parametrize("way", ["rewind", pytest.param("restore", marks=FULL)])
def test_a_frozen_driver_commits_nothing_behind_a_rewind(
    request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession, kind: str, where: str, way: str
) -> None:
    how = KINDS[kind]
    server = request.getfixturevalue(how.server) if how.server else None
    sandbox = how.project(tmp_path / "project", spark, server)
    settings = sandbox.root / "include" / "project.yaml"
    settings.write_text(settings.read_text() + "lease_ttl: 30 minutes\nairflow: {retry_delay: 31 minutes}\n")
    land(sandbox, 0)
    sandbox.run(NAME)
    before = how.rows(sandbox)
    if way == "restore":
        checkpoint(sandbox, "snapshot")
    land(sandbox, 1)
    with sandbox.metastore() as metastore:
        last = max(batch.batch_id for batch in metastore.batches(NAME, 1))
    with frozen(sandbox, NAME, where) as stale:
        move_lease(sandbox, -timedelta(hours=1))
        words = ["restore", NAME, "latest"] if way == "restore" else ["rewind", NAME, "--to", str(last)]
        done = drawdown(sandbox.root, "checkpoint", *words, "--sink")
        assert done.returncode == 0, done.stdout + done.stderr
        land(sandbox, 2)
        code, said = stale.wake()
    assert code == 3, said
    assert said.count("lease.lost") == 1, said
    assert _rows(how, sandbox) == before
    sandbox.run(NAME)
    found = _rows(how, sandbox)
    control = how.project(tmp_path / "control", spark, server)
    for wave in range(3):
        land(control, wave)
    control.run(NAME)
    assert found == _rows(how, control)


def _rows(kind: Kind, sandbox: Sandbox) -> Rows:
    spark = sandbox.spark
    assert spark is not None
    assert spark._jvm is not None
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    return kind.rows(sandbox)


def test_what_a_frozen_driver_writes_to_files_behind_a_rewind_does_not_count(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Nothing fences Spark's own sink: the next run finds a batch that it plans anew written already."""
    rows = RowByRow("parquet", tmp_path / "project", spark, None)
    settings = rows.sandbox.root / "include" / "project.yaml"
    settings.write_text(settings.read_text() + "lease_ttl: 30 minutes\nairflow: {retry_delay: 31 minutes}\n")
    rows.land(1)
    rows.until_drained()
    rows.land(2)
    rows.land(3)
    with frozen(rows.sandbox, NAME, "before batch.stage") as stale:
        move_lease(rows.sandbox, -timedelta(hours=1))
        done = drawdown(rows.sandbox.root, "checkpoint", "rewind", NAME, "--to", "0", "--sink")
        assert done.returncode == 0, done.stdout + done.stderr
        spec = rows.folder / "pipeline.yaml"
        spec.write_text(spec.read_text().replace("maxFilesPerTrigger: 1", "maxFilesPerTrigger: 2"))
        code, said = stale.wake()
    assert code == 3, said
    assert "lease.lost" in said
    assert rows.in_sink() == {1: 1, 2: 1}, "it has written, and no run has seen it yet"
    rows.until_drained()
    assert rows.in_sink() == {1: 1, 2: 1, 3: 1}
