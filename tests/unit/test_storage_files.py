"""Storage: the same files locally and behind a URL, atomic writes, private modes, honest listings."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from drawdown.errors import MachineError, RefusedError, SourceError
from drawdown.storage import Storage


@pytest.fixture(params=["path", "file-url", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "memory":
        return Storage(f"memory://bucket-{tmp_path.name}/root")
    (tmp_path / "root").mkdir()
    return Storage(str(tmp_path / "root") if request.param == "path" else f"file://{tmp_path}/root")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_written_is_read_again(storage: Storage) -> None:
    storage.write_atomic("a/b/c.json", b"one")
    storage.write_atomic("a/b/c.json", b"two")
    assert storage.read_bytes("a/b/c.json") == b"two"
    assert [info.relative for info in storage.walk("a")] == ["a/b/c.json"]


def test_a_listing_says_path_size_and_time(storage: Storage) -> None:
    storage.write_atomic("in/x 1%.csv", b"12345")
    (info,) = storage.list_files("in/*")
    assert (info.path, info.relative, info.name, info.size) == (
        f"{storage.root}/in/x 1%.csv",
        "in/x 1%.csv",
        "x 1%.csv",
        5,
    )
    assert info.mtime_ms > 1_700_000_000_000
    assert storage.info("in/x 1%.csv") == info
    assert storage.info("in/nothing") is None


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("in/*", ["in/.hidden", "in/a.csv", "in/b.json"]),
        ("in/*.csv", ["in/a.csv"]),
        ("in/?.{csv,json}", ["in/a.csv", "in/b.json"]),
        ("in/[!a].json", ["in/b.json"]),
        ("in/*/*", ["in/day=1/c.csv", "in/day=2/d.csv"]),
        ("in/{day=1/c,day=2/nothing}.csv", ["in/day=1/c.csv"]),
        ("in/a.csv", ["in/a.csv"]),
        ("nowhere/*", []),
    ],
)
def test_patterns_match_as_hadoop_matches_them(storage: Storage, pattern: str, expected: list[str]) -> None:
    for name in ("a.csv", "b.json", ".hidden", "day=1/c.csv", "day=2/d.csv"):
        storage.write_atomic(f"in/{name}", b"")
    assert [info.relative for info in storage.list_files(pattern)] == expected


def test_deleting_takes_files_and_whole_folders_and_forgives_absence(storage: Storage) -> None:
    storage.write_atomic("a/b/c", b"x")
    storage.write_atomic("a/d", b"x")
    storage.delete("a/b")
    assert (storage.exists("a/b/c"), storage.exists("a/d")) == (False, True)
    storage.delete("a/b")
    with pytest.raises(RefusedError, match="root itself"):
        storage.delete("")
    assert storage.exists("a/d")


def test_a_missing_file_is_pythons_own_error(storage: Storage) -> None:
    with pytest.raises(FileNotFoundError):
        storage.read_bytes("nothing")
    assert list(storage.walk("nothing")) == []
    assert not storage.exists("nothing")


def test_a_url_root_is_kept_as_given_for_spark() -> None:
    assert Storage("file:///tmp/x y/").path("a/*.csv") == "file:///tmp/x y/a/*.csv"
    assert Storage("memory://b/root").path("a") == "memory://b/root/a"
    assert Storage("/tmp/x").path("") == "/tmp/x"


def test_a_path_that_storage_gave_comes_back_relative(storage: Storage) -> None:
    assert storage.relative(storage.path("a/b")) == "a/b"
    assert storage.relative("a/b") == "a/b"
    assert storage.relative(storage.root) == ""


def test_an_unknown_scheme_says_what_to_install() -> None:
    with pytest.raises(MachineError) as caught:
        Storage("nosuchscheme://x/y")
    assert caught.value.id == "storage.backend"


def test_hdfs_without_hadoops_libraries_says_so() -> None:
    with pytest.raises(MachineError) as caught:
        Storage("hdfs://localhost:1/lake")
    assert caught.value.id == "storage.backend"
    assert "\n" not in caught.value.what


def test_what_drawdown_writes_is_private_and_what_is_there_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir(mode=0o755)
    (tmp_path / "landing" / "user.csv").write_text("x")
    before = mode(tmp_path / "landing"), mode(tmp_path / "landing" / "user.csv")
    old = os.umask(0)
    try:
        storage = Storage(str(tmp_path))
        storage.write_atomic("_drawdown/p/carrier.json", b"{}")
        storage.makedirs("landing/deep/er")
    finally:
        os.umask(old)
    assert mode(tmp_path / "_drawdown/p/carrier.json") == 0o600
    assert {mode(tmp_path / name) for name in ("_drawdown", "_drawdown/p", "landing/deep/er")} == {0o700}
    assert (mode(tmp_path / "landing"), mode(tmp_path / "landing" / "user.csv")) == before


def test_a_reader_never_sees_a_part_of_a_write(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    contents = {bytes([n]) * 200_000 for n in (65, 66)}
    storage.write_atomic("f", min(contents))
    done = threading.Event()

    def write() -> None:
        for _ in range(50):
            for content in contents:
                storage.write_atomic("f", content)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        assert storage.read_bytes("f") in contents
    writer.join()
    assert [info.name for info in storage.walk("")] == ["f"]


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    (tmp_path / "f").mkdir()
    with pytest.raises(RefusedError) as caught:
        storage.write_atomic("f", b"x")
    assert caught.value.id == "storage.wrong-kind"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_links_inside_the_root_are_followed_but_never_round_in_circles(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_text("x")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    found = sorted(info.relative for info in Storage(str(tmp_path)).walk(""))
    assert found == ["a/x", "b/x"]


def test_a_folder_in_the_place_of_a_file_is_no_outage(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("text")
    for path, found in (("folder", "a folder where a file"), ("file/below", "a file where a folder")):
        with pytest.raises(RefusedError, match=found) as caught:
            storage.read_bytes(path)
        assert caught.value.id == "storage.wrong-kind"


def test_what_else_a_store_answers_is_an_outage(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="File name too long") as caught:
        Storage(str(tmp_path)).read_bytes("x" * 300)
    assert caught.value.id == "storage.unreachable"
