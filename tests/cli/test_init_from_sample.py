"""`drawdown init --from-sample`: from a file of one's own to a table, as a newcomer types it."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from drawdown.application import SparkApplication
from drawdown.spec import load_pipeline, load_project
from drawdown.workspace import Workspace
from tests.cli.test_commands import refused
from tests.support.command_line import drawdown

ORDERS = """\
Order ID;created_at;Customer Name;amount;country;zip
1001;03.02.2025 10:15;"Müller; Anna";12.50;DE;01067
1002;03.02.2025 10:17;Bob;7.99;FR;75001
1003;13.02.2025 10:16;Eve;NA;NL;01011
"""
EVENTS = """\
{"event_id": "a1", "at": "2025-02-03T10:15:00.123456Z", "user": {"id": 7}, "tags": ["x"], "price": 3}
{"event_id": "a2", "at": "2025-02-03T10:11:00Z", "user": {"id": 8}, "tags": [], "price": 3.5}
"""


def test_a_csv_file_becomes_a_tested_pipeline_and_a_run_publishes_its_rows(
    tmp_path: Path, spark: SparkSession
) -> None:
    sample = tmp_path / "orders.csv"
    sample.write_text(ORDERS)
    root = tmp_path / "project"
    root.mkdir()
    made = drawdown(root, "init", "orders", "--from-sample", str(sample), "--yes")
    assert made.returncode == 0, made.stderr
    assert "created_at: TIMESTAMP" in made.stderr
    assert "✓ orders/first: 1 wave" in made.stdout
    assert "drawdown run orders" in made.stdout.partition("✓ orders/first: 1 wave")[2]

    with Workspace.open(load_project(root)) as workspace:
        orders = load_pipeline(workspace.project, "orders")
        [report] = SparkApplication(workspace, session=spark).drain_all([orders])
    assert report.error is None
    rows = deltalake.DeltaTable(str(root / ".drawdown/storage/tables/orders")).to_pyarrow_table()
    assert rows.column("zip").to_pylist() == ["01067", "75001", "01011"]
    assert rows.column("customer_name").to_pylist()[0] == "Müller; Anna"
    assert [str(amount) for amount in rows.column("amount").to_pylist()] == ["12.50", "7.99", "None"]


@pytest.mark.full
def test_json_and_parquet_samples_become_tested_pipelines(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text(EVENTS)
    of = pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))
    amounts = pa.array([1, 2], pa.int64()).cast(pa.decimal128(21, 2))
    pq.write_table(pa.table({"id": [1, 2], "of": of, "amount": amounts}), tmp_path / "rows.parquet")
    for name, file in (("events", "events.jsonl"), ("rows", "rows.parquet")):
        made = drawdown(tmp_path, "init", name, "--from-sample", file, "--yes")
        assert made.returncode == 0, made.stderr
        assert f"✓ {name}/first: 1 wave" in made.stdout


def test_a_sample_that_cannot_be_used_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    before = sorted(tmp_path.rglob("*"))
    refused(drawdown(tmp_path, "init", "x", "--from-sample", "none.csv"), 2, "init.sample-missing")
    refused(drawdown(tmp_path, "init", "x", "--from-sample", "empty.csv"), 2, "init.sample-empty")
    both = drawdown(tmp_path, "init", "x", "--from-sample", "empty.csv", "--from-topic", "t")
    refused(both, 2, "init.two-samples")
    assert sorted(tmp_path.rglob("*")) == before
