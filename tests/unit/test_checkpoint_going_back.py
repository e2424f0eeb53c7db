"""Logs of files that go back over a compaction, state files that miss a version, checksums."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest

from drawdown.checkpoint import CheckpointFiles, FileLog, StateFiles, Verification, checksum_path
from drawdown.checkpoint.checksums import checksum_differs
from drawdown.checkpoint.file_log import SOURCE_FIELDS
from drawdown.checkpoint.state_files import cut_short
from drawdown.storage import Storage


def _entry(number: int) -> str:
    return json.dumps({"path": f"file:///in/{number}", "timestamp": number, "batchId": number})


def _log(root: Path, last: int, compacted: tuple[int, ...], kept: range) -> FileLog:
    folder = root / "log"
    folder.mkdir()
    for number in compacted:
        lines = ["v1", *(_entry(n) for n in range(number + 1))]
        (folder / f"{number}.compact").write_text("\n".join(lines))
    for number in kept:
        (folder / str(number)).write_text(f"v1\n{_entry(number)}")
    assert max([*compacted, *kept]) == last
    return FileLog(Storage(str(root)), "log", SOURCE_FIELDS)


@pytest.mark.parametrize("last", [0, 7, 8, 9, 10, 18, 19, 22])
def test_a_log_goes_back_to_any_entry_over_a_compaction(tmp_path: Path, last: int) -> None:
    """Superseded entries are deleted after a while, so most are in the compacted one only."""
    log = _log(tmp_path, 22, (9, 19), range(20, 23))
    log.cut(last)
    assert [record["batchId"] for record in log.everything()] == list(range(last + 1))
    # Names as Spark looks for them: every tenth is a compacted one, all after the newest of those are plain.
    base = (last + 1) // 10 * 10 - 1
    wanted = {f"{base}.compact"} if base >= 0 else set()
    wanted |= {str(entry) for entry in range(base + 1, last + 1)}
    there = {path.name for path in (tmp_path / "log").iterdir()}
    assert wanted <= there
    assert max(log.names().values()) == last


def test_a_version_is_made_of_a_whole_state_and_every_change_since(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint/state/0/1/left-keyToNumValues"
    folder.mkdir(parents=True)
    for name in ("3.snapshot", "2.delta", "3.delta", "4.delta", "6.delta"):
        (folder / name).write_text("x")
    [store] = StateFiles.read(Storage(str(tmp_path)), "checkpoint").stores.values()
    assert str(store.id) == "operator 0, partition 1, store left-keyToNumValues"
    found, missing = store.needed(6)
    assert sorted(info.name for info in found) == ["3.snapshot", "4.delta", "6.delta"]
    assert missing == [5]
    assert store.needed(4, frozenset({f"checkpoint/state/{store.id.folder}/3.snapshot"}))[1] == [1]


def test_a_checksum_is_hadoops_over_chunks_of_512_bytes(tmp_path: Path) -> None:
    storage, content = Storage(str(tmp_path)), bytes(range(256)) * 5
    sums = b"".join(zlib.crc32(content[i : i + 512]).to_bytes(4, "big") for i in (0, 512, 1024))
    storage.write_atomic("a/file", content)
    assert not checksum_differs(storage, "a/file", content), "without one, Hadoop reads unchecked"
    storage.write_atomic(checksum_path("a/file"), b"crc\0" + (512).to_bytes(4, "big") + sums)
    assert not checksum_differs(storage, "a/file", content)
    assert checksum_differs(storage, "a/file", content[:-1])
    storage.write_atomic(checksum_path("a/file"), b"crc\0")
    assert checksum_differs(storage, "a/file", content)


def test_changes_that_end_in_a_block_are_torn_without_a_checksum_too() -> None:
    def block(length: int) -> bytes:
        head = b"LZ4Block" + b"\x16" + length.to_bytes(4, "little") + bytes(8)
        return head + bytes(length)

    whole = block(40) + block(7) + block(0)
    assert cut_short(whole) == ""
    assert all(cut_short(whole[:length]) for length in range(8, len(whole)))
    assert cut_short(b"") == "it is empty"
    assert cut_short(b"another codec") == ""


def test_a_checkpoint_without_any_file_has_no_fault(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    assert Verification(storage, CheckpointFiles(storage, "nothing"), stateful=True).everything() == []
