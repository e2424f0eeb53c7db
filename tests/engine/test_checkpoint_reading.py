"""The checkpoint reader against checkpoints that Spark itself wrote."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.checkpoint import SINK_FIELDS, CheckpointFiles, FileLog
from drawdown.errors import RefusedError
from drawdown.storage import Storage
from tests.support.checkpoint_queries import write_checkpoints


def at(hour: int, minute: int) -> int:
    return int(datetime(2024, 1, 1, hour, minute, tzinfo=UTC).timestamp() * 1000)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """The folder with the checkpoints of tests/support/checkpoint_queries.py."""
    root = tmp_path_factory.mktemp("checkpoints")
    write_checkpoints(spark, root)
    return root


@pytest.fixture
def copy(written: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Copies a checkpoint, to be damaged."""

    def take(name: str) -> Path:
        return Path(shutil.copytree(written / name, tmp_path / name))

    return take


def reader(folder: Path) -> CheckpointFiles:
    return CheckpointFiles(Storage(str(folder.parent)), folder.name)


@pytest.mark.full
def test_batches_query_and_watermarks_are_what_spark_wrote(written: Path) -> None:
    files = reader(written / "one")
    assert files.exists
    assert files.query_id() == json.loads((written / "one/metadata").read_text())["id"]
    last = files.last_commit_batch()
    assert last == files.last_offset_batch()
    assert last is not None
    assert last >= 12
    assert not files.unfinished
    assert files.commit(last)["nextBatchWatermarkMs"] == at(2, 0)
    assert files.offsets(last).metadata["conf"]["spark.sql.shuffle.partitions"] == "2"
    assert files.offsets(0).offsets == [{"logOffset": 0}]


@pytest.mark.full
def test_every_file_that_was_read_is_found_under_its_plain_name(written: Path) -> None:
    seen = reader(written / "one").seen_files(0)
    expected = {"x 1%é.json", "later.json", *(f"{number:02}.json" for number in range(1, 12))}
    assert {file.path for file in seen} == {f"{written}/in one/{name}" for name in expected}
    assert [file.log_offset for file in seen] == list(range(13))
    times = {file.path: file.timestamp_ms for file in seen}
    assert all(Path(path).stat().st_mtime_ns // 1_000_000 == time for path, time in times.items())


def test_the_files_of_one_batch_are_found_before_in_and_after_a_compaction(written: Path) -> None:
    files = reader(written / "one")
    assert (written / "one/sources/0/9.compact").exists()
    everything = files.seen_files(0)
    for first, last in ((0, 0), (8, 8), (9, 9), (12, 12), (7, 11), (0, 12)):
        assert files.source_files(0, first, last) == everything[first : last + 1]


def test_expired_log_entries_are_read_from_the_compacted_one(copy: Callable[[str], Path]) -> None:
    folder = copy("one")
    before = reader(folder).seen_files(0)
    for number in range(9):
        (folder / f"sources/0/{number}").unlink()
    assert reader(folder).seen_files(0) == before
    assert reader(folder).source_files(0, 3, 10) == before[3:11]


def test_rows_are_late_against_the_watermark_of_the_batch_before(written: Path) -> None:
    files = reader(written / "late")
    dropped = {int(batch): rows for batch, rows in json.loads((written / "late.json").read_text()).items()}
    last = files.last_commit_batch()
    assert last is not None
    expected: dict[int, int] = {}
    for batch in range(last + 1):
        new = files.offsets(batch).offsets[0]["logOffset"]
        old = files.offsets(batch - 1).offsets[0]["logOffset"] if batch else -1
        rows = [
            datetime.fromisoformat(json.loads(line)["t"]).timestamp() * 1000
            for file in (files.source_files(0, old + 1, new) if new > old else [])
            for line in Path(file.path).read_text().splitlines()
        ]
        expected[batch] = sum(row <= files.late_watermark(batch) for row in rows)
    assert expected == {batch: dropped.get(batch, 0) for batch in expected}
    assert sum(expected.values()) > 0
    assert files.late_watermark(0) == 0


def test_a_source_without_an_offset_is_none_until_it_has_one(written: Path) -> None:
    files = reader(written / "two")
    assert files.offsets(0).offsets == [{"logOffset": 0}, None]
    assert files.offsets(1).offsets == [{"logOffset": 0}, {"logOffset": 0}]
    assert files.sources() == ["0", "1"]
    assert [Path(file.path).name for file in files.seen_files(1)] == ["b.json"]


def test_named_sources_of_version_2_are_found_by_name(written: Path) -> None:
    assert (written / "named/offsets/1").read_text().startswith("v2")
    files = reader(written / "named")
    assert files.offsets(0).by_source == {"flights": {"logOffset": 0}}
    assert files.offsets(1).by_source == {"flights": {"logOffset": 0}, "weather": {"logOffset": 0}}
    assert files.sources() == ["flights", "weather"]
    assert [Path(file.path).name for file in files.seen_files("weather")] == ["b.json"]


def test_a_planned_batch_without_commit_is_unfinished(copy: Callable[[str], Path]) -> None:
    folder = copy("two")
    (folder / "commits/1").unlink()
    assert reader(folder).unfinished
    (folder / "commits/0").unlink()
    assert reader(folder).unfinished
    assert reader(folder).last_commit_batch() is None


def test_a_planned_batch_that_reads_nothing_leaves_nothing_unread(copy: Callable[[str], Path]) -> None:
    folder = copy("two")
    last = reader(folder).last_offset_batch()
    assert last is not None
    assert not reader(folder).unread
    shutil.copy(folder / f"offsets/{last}", folder / f"offsets/{last + 1}")
    assert (reader(folder).unfinished, reader(folder).unread) == (True, False)
    shutil.rmtree(folder / "commits")
    assert reader(folder).unread


def test_a_folder_that_spark_never_saw_is_an_empty_checkpoint(tmp_path: Path) -> None:
    files = CheckpointFiles(Storage(str(tmp_path)), "nothing")
    assert (files.exists, files.query_id(), files.last_offset_batch(), files.unfinished, files.sources()) == (
        False,
        None,
        None,
        False,
        [],
    )
    assert files.seen_files(0) == []


def test_checksums_and_half_written_names_are_no_batches(copy: Callable[[str], Path]) -> None:
    folder = copy("two")
    (folder / "offsets/.99.crc").write_bytes(b"x")
    (folder / "offsets/.99.0b003d2e-0706.tmp").write_text("v1\n")
    (folder / "offsets/7.txt").write_text("v1\n")
    (folder / "sources/0/.9.compact.crc").write_bytes(b"x")
    assert reader(folder).last_offset_batch() == 1
    assert len(reader(folder).seen_files(0)) == 1


DAMAGE = {
    "empty": (b"", "checkpoint.torn"),
    "version only": (b"v1", "checkpoint.torn"),
    "cut short": (b'v1\n{"batchWatermarkMs":0,"batchTi', "checkpoint.torn"),
    "an offset cut short": (b'v1\n{"batchWatermarkMs":0}\n{"logOff', "checkpoint.torn"),
    "a list for metadata": (b"v1\n[1]\n-", "checkpoint.torn"),
    "a word for the watermark": (b'v1\n{"batchWatermarkMs":"soon"}\n-', "checkpoint.torn"),
    "a nameless offset of version 2": (b"v2\n{}\n{}", "checkpoint.torn"),
    "zeros": (b"\x00" * 512, "checkpoint.foreign"),
    "not text": (b"\xff\xfe\x00", "checkpoint.torn"),
    "somebody else's file": (b"hello\nworld", "checkpoint.foreign"),
    "a newer Spark's file": (b"v3\n{}\n-", "checkpoint.future"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_offset_file_is_refused_by_name(copy: Callable[[str], Path], damage: str) -> None:
    content, id = DAMAGE[damage]
    folder = copy("two")
    (folder / "offsets/1").write_bytes(content)
    with pytest.raises(RefusedError) as caught:
        reader(folder).offsets(1)
    assert (caught.value.id, caught.value.where) == (id, f"{folder}/offsets/1")
    assert caught.value.do


@pytest.mark.parametrize(
    ("file", "content", "id"),
    [
        ("commits/1", b"", "checkpoint.torn"),
        ("commits/1", b'v1\n{"nextBatch', "checkpoint.torn"),
        ("commits/1", b"v9\n{}", "checkpoint.future"),
        ("metadata", b"", "checkpoint.torn"),
        ("metadata", b"{}", "checkpoint.torn"),
        ("metadata", b"\xff", "checkpoint.torn"),
        ("sources/0/0", b"", "checkpoint.torn"),
        ("sources/0/0", b'v1\n{"path":"file:///x","time', "checkpoint.torn"),
        ("sources/0/0", b'v1\n{"path":"file:///x"}', "checkpoint.torn"),
        ("sources/0/0", b'v1\n{"name":"x"}', "checkpoint.torn"),
        ("sources/0/0", b"v2\n", "checkpoint.future"),
    ],
)
def test_every_other_damaged_file_is_refused_too(
    copy: Callable[[str], Path], file: str, content: bytes, id: str
) -> None:
    folder = copy("two")
    (folder / file).write_bytes(content)
    files = reader(folder)
    reads = {"commits/1": lambda: files.commit(1), "metadata": files.query_id}
    with pytest.raises(RefusedError) as caught:
        reads.get(file, lambda: files.seen_files(0))()
    assert (caught.value.id, caught.value.where) == (id, f"{folder}/{file}")


def test_a_batch_or_a_log_entry_that_is_gone_is_named(copy: Callable[[str], Path]) -> None:
    folder = copy("one")
    for call, id in (
        (lambda: reader(folder).offsets(77), "checkpoint.missing-batch"),
        (lambda: reader(folder).commit(77), "checkpoint.missing-batch"),
        (lambda: reader(folder).source_files(0, 11, 77), "checkpoint.missing-entry"),
    ):
        with pytest.raises(RefusedError) as caught:
            call()
        assert caught.value.id == id
    (folder / "sources/0/11").unlink()
    with pytest.raises(RefusedError) as caught:
        reader(folder).seen_files(0)
    assert caught.value.id == "checkpoint.missing-entry"


def test_a_file_sinks_log_is_read_with_the_same_rules(tmp_path: Path) -> None:
    log = tmp_path / "table/_spark_metadata"
    log.mkdir(parents=True)
    line = '{"path":"file:///t/part-%d","size":1,"isDir":false,"modificationTime":5,"action":"add"}'
    (log / "9.compact").write_text("v1\n" + line % 0 + "\n" + line % 9)
    (log / "8").write_text("v1\n" + line % 0)
    (log / "10").write_text("v1")
    (log / "11").write_text("v1\n" + line % 11)
    records = FileLog(Storage(str(tmp_path)), "table/_spark_metadata", SINK_FIELDS).everything()
    assert [record["path"][-2:].lstrip("-") for record in records] == ["0", "9", "11"]
