"""A process that ends right after it has read a table ends well: no thread of a library aborts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

ENDINGS = 8
"""With DeltaTable.to_pyarrow_table one process in three was aborted, with parquet.read_table one in four."""

OF_A_TABLE = """
import sys
from drawdown.delta.table import DeltaTableFiles
assert DeltaTableFiles(sys.argv[1] + "/table").content(["n"]).num_rows == 3000
"""
OF_A_FILE = """
import sys
from drawdown.storage.parquet_file import read_parquet
from drawdown.storage import Storage
assert read_parquet(Storage(sys.argv[1]), "file.parquet", ["n"]).num_rows == 1000
"""


@pytest.mark.parametrize("read", [OF_A_TABLE, OF_A_FILE], ids=["table", "file"])
def test_a_process_ends_well_right_after_a_read(tmp_path: Path, read: str) -> None:
    rows = pa.table({"n": list(range(1000)), "text": [str(n) for n in range(1000)]})
    for _ in range(3):
        write_deltalake(str(tmp_path / "table"), rows, mode="append")
    pq.write_table(rows, tmp_path / "file.parquet")
    for _ in range(ENDINGS):
        done = subprocess.run(
            [sys.executable, "-c", read, str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
