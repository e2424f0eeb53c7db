"""`drawdown plan` as a stranger types it: what it prints, and what it ends with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_commands import drawdown
from tests.support.command_line import answer


def _files(folder: Path) -> set[Path]:
    return {
        path
        for path in folder.rglob("*")
        if ".drawdown" not in path.parts and "__pycache__" not in path.parts
    }


def test_plan_says_what_a_run_would_read_and_ends_with_3_when_it_is_refused(sales: Path) -> None:
    before = _files(sales)
    planned = drawdown(sales, "plan", "sales", "--json")
    assert planned.returncode == 0, planned.stderr
    said = answer(planned.stdout)
    assert (said["pipeline"], said["generation"]) == ("sales", None)
    assert all(verdict["level"] != "refused" for verdict in said["verdicts"])
    [reads] = said["reads"].values()
    assert reads["files"] > 0
    assert reads["bytes"] > 0
    assert set(said["versions"]) == {"spark", "delta", "drawdown"}
    assert (said["state"], said["fit"]["fits"], said["fit"]["batches"]) == (None, "yes", 1)

    sort(sales)
    page = drawdown(sales, "plan", "sales", "--format", "markdown")
    assert page.returncode == 3, page.stderr
    assert page.stdout.startswith("## Plan of `sales`\n\n❌ **The next run would be refused.**")
    assert _files(sales) == before


@pytest.mark.full
def test_a_refused_plan_reads_well_on_a_screen(sales: Path) -> None:
    sort(sales)
    refused = drawdown(sales, "plan", "sales")
    assert refused.returncode == 3, refused.stderr
    assert "mode.sort" in refused.stdout
    assert "sorting is not supported on a stream" in " ".join(refused.stdout.split())
    assert "a run would read" in refused.stdout
    assert "Traceback" not in refused.stdout + refused.stderr


def sort(sales: Path) -> None:
    """Spark refuses a sorted stream."""
    transform = sales / "include/pipelines/sales/transform.sql"
    transform.write_text(f"{transform.read_text().rstrip().rstrip(';')}\nORDER BY 1\n")
