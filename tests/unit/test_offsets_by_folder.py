"""A source that the query uses twice has two offsets in the log and one folder in ``sources/``."""

from __future__ import annotations

from pathlib import Path

from drawdown.checkpoint import CheckpointFiles, Verification
from drawdown.storage import Storage

# events UNION ALL events UNION ALL topic UNION ALL others: four uses of three sources.
ORDER = ("events", "events", "topic", "others")
OFFSETS = ['{"logOffset":1}', '{"logOffset":1}', '{"t":{"0":7}}', '{"logOffset":0}']


def checkpoint(root: Path) -> Storage:
    folder = root / "checkpoint"
    logs = {"offsets/4": ["v1", '{"batchWatermarkMs":0}', *OFFSETS], "commits/4": ["v1", "{}"]}
    logs |= {f"sources/{name}": ["v1"] for name in ("0/0", "0/1", "2/0")}
    for name, lines in {"metadata": ['{"id":"q"}'], **logs}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("\n".join(lines))
    return Storage(str(root))


def test_each_folder_has_the_offset_of_its_own_source(tmp_path: Path) -> None:
    files = CheckpointFiles(checkpoint(tmp_path), "checkpoint", ORDER)
    assert files.offsets_by_folder(4) == {
        "0": {"logOffset": 1},
        "1": {"t": {"0": 7}},
        "2": {"logOffset": 0},
    }


def test_only_a_folder_that_a_batch_has_read_is_missed(tmp_path: Path) -> None:
    storage = checkpoint(tmp_path)
    files = CheckpointFiles(storage, "checkpoint", ORDER)
    assert Verification(storage, files).restart() == []
    (tmp_path / "checkpoint/sources/2/0").unlink()
    [fault] = Verification(storage, files).restart()
    assert (fault.kind, fault.path) == ("missing", "checkpoint/sources/2/0")


def test_without_a_recorded_order_only_folders_that_exist_are_judged(tmp_path: Path) -> None:
    storage = checkpoint(tmp_path)
    files = CheckpointFiles(storage, "checkpoint")
    assert files.offsets_by_folder(4) == {"0": {"logOffset": 1}, "2": {"t": {"0": 7}}}
