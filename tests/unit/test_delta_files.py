"""Which files a Delta table names: what is swept must be none of them, whatever stands in a path."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from drawdown.delta.table import DeltaTableFiles


def test_the_files_of_a_table_are_named_as_a_listing_has_them(tmp_path: Path) -> None:
    folder = tmp_path / "a storage é" / "t"
    values = ["plain", "with space", "50%", "10:30", "é", "a/b"]
    rows = pa.table({"n": list(range(len(values))), "p": values})
    write_deltalake(folder, rows, partition_by=["p"])
    there = {str(path) for path in folder.rglob("*.parquet")}
    assert len(there) == len(values)
    assert DeltaTableFiles(str(folder)).referenced() == there
