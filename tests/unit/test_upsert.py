"""A publish in update mode: the latest row of each key gets into the table, and few are held at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from drawdown.changes.protocol import Commit, Staged
from drawdown.delta.table import DeltaTableFiles
from drawdown.metastore.records import StagedFile
from drawdown.sinks.delta.publish import DeltaTarget
from drawdown.storage import Storage
from tests.support.registered import change

# 80 MB. What delta-rs has on its way, up to 21 MB on a busy machine, does not grow with the rows.
_MANY = 400_000


@pytest.fixture
def pool() -> Iterator[pa.MemoryPool]:
    """Counts what Arrow holds in this test."""
    counting = pa.proxy_memory_pool(pa.default_memory_pool())
    before = pa.default_memory_pool()
    pa.set_memory_pool(counting)
    yield counting
    pa.set_memory_pool(before)


def _target(tmp_path: Path) -> DeltaTarget:
    empty = pa.table({"id": pa.array([], pa.int64()), "text": pa.array([], pa.string())})
    write_deltalake(str(tmp_path / "table"), empty)
    return DeltaTarget(Storage(str(tmp_path)), DeltaTableFiles(str(tmp_path / "table")), "update", ["id"])


def _staged(tmp_path: Path, batch_id: int, **columns: object) -> tuple[int, StagedFile]:
    table = pa.table(columns)
    path = tmp_path / f"{batch_id}-{len(list(tmp_path.glob('*.parquet')))}.parquet"
    pq.write_table(table, path, row_group_size=max(1, table.num_rows // 10))
    return batch_id, StagedFile("output", str(path), path.stat().st_size, table.num_rows, {})


def _publish(target: DeltaTarget, *files: tuple[int, StagedFile]) -> dict[int | None, str]:
    batches = sorted({batch_id for batch_id, _ in files})
    target.make_visible(Staged(batches, files), Commit("app", batches[-1], change()))
    return {row["id"]: row["text"] for row in DeltaTableFiles(target.table.uri).rows(["id", "text"])}


def test_the_row_of_the_last_batch_wins_and_null_is_a_key(tmp_path: Path) -> None:
    target = _target(tmp_path)
    first = _staged(tmp_path, 0, id=[1, 2, None], text=["old", "kept", "old"])
    second = _staged(tmp_path, 1, id=[None, 3], text=["new", "kept"])
    third = _staged(tmp_path, 1, id=[1], text=["new"])
    assert _publish(target, first, second, third) == {1: "new", 2: "kept", None: "new", 3: "kept"}


def test_batches_without_a_row_make_no_commit(tmp_path: Path) -> None:
    target = _target(tmp_path)
    nothing = _staged(tmp_path, 0, id=pa.array([], pa.int64()), text=pa.array([], pa.string()))
    assert _publish(target, nothing) == {}
    assert DeltaTableFiles(target.table.uri).version == 0


@pytest.mark.parametrize("batches", [1, 2])
def test_a_publish_holds_a_part_of_its_rows(tmp_path: Path, pool: pa.MemoryPool, batches: int) -> None:
    target = _target(tmp_path)
    half, texts = _MANY // 2, [f"{number:>200}" for number in range(_MANY)]
    files = [
        _staged(tmp_path, min(part, batches - 1), id=range(begin, begin + half), text=texts[begin:][:half])
        for part, begin in enumerate((0, half))
    ]
    before = pool.max_memory()
    whole = _MANY * 200
    counting = pa.proxy_memory_pool(pool)
    pa.set_memory_pool(counting)
    staged = Staged(list(range(batches)), files)
    target.make_visible(staged, Commit("app", batches - 1, change()))
    assert before > whole / 2, "what Arrow holds is counted"
    assert counting.max_memory() < whole / 2
    assert pa.table(DeltaTableFiles(target.table.uri).content(["id"])).num_rows == _MANY
