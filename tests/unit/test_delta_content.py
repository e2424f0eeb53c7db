"""All rows of a Delta table, read without Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from drawdown.changes.protocol import Commit
from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import SourceError
from drawdown.values.interval import Interval
from tests.support.registered import change

AT = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.fixture
def table(tmp_path: Path) -> DeltaTableFiles:
    """Columns named like words of SQL, with quotes and with capitals."""
    rows = {"offset": [1, 2], "Reasons": [["a"], []], 'q"x': ["ä", None], "at": [AT, None]}
    write_deltalake(str(tmp_path), pa.table(rows))
    return DeltaTableFiles(str(tmp_path))


def test_rows_have_the_columns_that_are_there_and_times_in_utc(table: DeltaTableFiles) -> None:
    found = sorted(table.rows(["at", "offset", 'q"x', "Reasons", "gone"]), key=lambda row: row["offset"])
    assert found == [
        {"at": AT, "offset": 1, 'q"x': "ä", "Reasons": ["a"]},
        {"at": None, "offset": 2, 'q"x': None, "Reasons": []},
    ]
    assert found[0]["at"].tzinfo is not None


def test_a_file_that_is_gone_is_one_error_with_its_name(table: DeltaTableFiles, tmp_path: Path) -> None:
    [gone] = tmp_path.glob("*.parquet")
    gone.unlink()
    with pytest.raises(SourceError) as error:
        table.rows(["offset"])
    assert error.value.id == "sink.unreadable"
    assert gone.name in error.value.what


def test_rows_are_fitted_by_name_and_what_they_lack_is_null(table: DeltaTableFiles) -> None:
    """Their order and their number are not the table's: a column was added in the middle."""
    rows = pa.table({"at": pa.array([AT], pa.timestamp("ms", "UTC")), "offset": pa.array([2], pa.int32())})
    table.merge(rows.to_batches(), ["offset"], Commit("app", 1, change()))
    found = DeltaTableFiles(table.uri).rows(["offset", "at", "Reasons"])
    assert sorted(found, key=lambda row: row["offset"]) == [
        {"offset": 1, "at": AT, "Reasons": ["a"]},
        {"offset": 2, "at": AT, "Reasons": None},
    ]
    interval = Interval(AT, AT + timedelta(days=1))
    assert table.replace("at", interval, rows.slice(0, 1).to_batches(), change(), {})
    assert [row["offset"] for row in DeltaTableFiles(table.uri).rows(["offset"])] == [2]
