"""A file of a planned batch is lost for good: a command takes it out of the batch, also of the very first."""

from __future__ import annotations

import pytest

from tests.support.command_line import drawdown
from tests.support.deaths import die
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  left: {format: json, path: landing/left, schema: in.ddl, watermark: {column: at, delay: 1 hour}}
  right: {format: json, path: landing/right, schema: in.ddl, watermark: {column: at, delay: 1 hour}}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: "id INT"}
state: {partitions: 2}
"""


@pytest.mark.capability("RIGHT-08")
@pytest.mark.parametrize("first", [True, pytest.param(False, marks=pytest.mark.full)])
def test_a_lost_file_is_taken_out_of_a_planned_batch(sandbox: Sandbox, first: bool) -> None:
    sql = "SELECT id FROM left UNION ALL SELECT id FROM right"
    sandbox.pipeline("out", SPEC, transform_sql=sql, in_ddl="id INT, at TIMESTAMP")

    def land(number: int) -> None:
        for side, id in (("left", number), ("right", number + 1)):
            row = {"id": id, "at": "2024-01-01T00:00:00Z"}
            sandbox.land_json(f"landing/{side}/{number}.json", [row], mtime=number)

    land(10)
    if not first:
        sandbox.run("out")
        land(20)
    lost = 10 if first else 20
    die(sandbox, "out", "before batch.stage 1")
    (sandbox.storage / f"landing/left/{lost}.json").unlink()
    [report] = sandbox.drain("out")
    assert report.error is not None
    assert report.error.id == "source.gone"
    gone = sandbox.storage / f"landing/left/{lost}.json"
    assert f"`drawdown quarantine file out {gone} --why ...` takes it out of the batch" in report.error.do
    wrong = drawdown(sandbox.root, "quarantine", "file", "out", "landing/left/none.json", "--why", "x")
    assert "quarantine.no-file" in wrong.stderr + wrong.stdout
    aside = drawdown(sandbox.root, "quarantine", "file", "out", f"landing/left/{lost}.json", "--why", "lost")
    assert aside.returncode == 0, aside.stdout + aside.stderr
    sandbox.run("out")
    land(30)
    sandbox.run("out")
    kept = [11] if first else [10, 11, 21]
    assert [row[0] for row in sandbox.delta("tables/out")] == [*kept, 30, 31]
