"""How large a state is: bytes by the checkpoint's files, rows by the newest run that tells."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from drawdown.metastore.records import Checkpoint, Run
from drawdown.plan.state_size import StateSize, state_size
from drawdown.storage import Storage

CHECKPOINT = Checkpoint(
    "sales", 2, "_drawdown/sales/checkpoint-2", None, {}, datetime(2024, 1, 1, tzinfo=UTC)
)


def run(run_id: str, generation: int, *rows: int) -> Run:
    progress = [{"operators": [{"rows": count}, {"rows": 1}]} for count in rows]
    return Run(run_id, "sales", generation=generation, progress=progress)


def test_rows_are_those_after_the_last_batch_of_this_generation(tmp_path: Path) -> None:
    for name in ("state/0/0/1.delta", "state/0/1/1.delta", "offsets/0"):
        file = tmp_path / CHECKPOINT.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"12345")
    storage = Storage(str(tmp_path))
    runs = [run("idle", 2), run("newest", 2, 7, 9), run("older", 2, 100), run("of before", 1, 1_000)]
    assert state_size(storage, CHECKPOINT, runs) == StateSize(rows=10, bytes=10, files=2)
    assert state_size(storage, CHECKPOINT, runs[3:]) == StateSize(rows=None, bytes=10, files=2)


def test_rows_that_rocksdb_did_not_count_are_unknown(tmp_path: Path) -> None:
    metrics = {"rocksdbBytesCopied": 7}
    of_old = {"rows": 0, "metrics": metrics}
    for operator, rows in (
        (of_old, None),
        ({"rows": None, "counted": False, "metrics": metrics}, None),
        ({"rows": 0, "counted": True, "metrics": metrics}, 0),
        ({"rows": 0, "metrics": {"loadedMapCacheHitCount": 1}}, 0),
        ({"rows": 5, "metrics": metrics}, 5),
    ):
        ran = Run("r", "sales", generation=2, progress=[{"operators": [operator]}])
        found = state_size(Storage(str(tmp_path)), CHECKPOINT, [ran])
        assert found is not None
        assert found.rows == rows, operator


def test_before_the_first_run_there_is_none(tmp_path: Path) -> None:
    assert state_size(Storage(str(tmp_path)), None, []) is None
