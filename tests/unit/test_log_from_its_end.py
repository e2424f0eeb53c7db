"""The log of seen files is read from its end, and no further back than the files that are listed need."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pytest

from drawdown.checkpoint import SOURCE_FIELDS, CheckpointFiles, FileLog
from drawdown.errors import RefusedError
from drawdown.metastore.records import FileMark
from drawdown.sources.files.new_files import FileArrivals, arrivals
from drawdown.sources.files.notified.listing import SourceListing
from drawdown.sources.read_log import ReadLog
from drawdown.spec import Source
from drawdown.storage import Storage
from tests.support.buckets import storage_of
from tests.support.s3_servers import Moto

FOLDER = "checkpoint/sources/0"
MANY = 30_000
YEAR_2020 = 1_577_836_800_000


def write(storage: Storage, name: str, entry: int, files: Iterable[tuple[str, int]]) -> None:
    lines = [json.dumps({"path": path, "timestamp": at, "batchId": entry}) for path, at in files]
    storage.write_atomic(f"{FOLDER}/{name}", "\n".join(["v1", *lines]).encode())


def of_many(storage: Storage) -> None:
    """A log as Spark has it after twelve batches: ten of many files, compacted, then two of one."""
    files = [(storage.path(f"in/{n:06}.json"), YEAR_2020 + n * 1_000) for n in range(MANY)]
    write(storage, "9.compact", 9, files)
    for entry in (10, 11):
        write(storage, str(entry), entry, [(storage.path(f"in/{MANY + entry}"), YEAR_2020 + MANY * 2_000)])


def test_blocks_from_the_end_are_the_whole_log(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    of_many(storage)
    log = FileLog(storage, FOLDER, SOURCE_FIELDS)
    blocks = list(log.newest_first())
    assert len(blocks) > 2
    assert list(chain.from_iterable(reversed(blocks))) == log.everything()
    assert [record["batchId"] for record in blocks[0][-2:]] == [10, 11]


def test_a_damaged_line_is_found_when_its_block_is_read(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    of_many(storage)
    path = f"{FOLDER}/9.compact"
    whole = storage.read_bytes(path)
    storage.write_atomic(path, whole.replace(b'"timestamp"', b'"time', 1))
    log = ReadLog(CheckpointFiles(storage, "checkpoint").newest_seen_files(0))
    assert log.read_more()
    with pytest.raises(RefusedError, match="cannot be read"):
        log.read_all()
    storage.write_atomic(path, whole.replace(b"v1", b"v9", 1))
    with pytest.raises(RefusedError, match="version 9"):
        list(FileLog(storage, FOLDER, SOURCE_FIELDS).newest_first())


class Landing:
    """A source with `order: name` in a bucket."""

    def __init__(self, server: Moto) -> None:
        self.server = server
        self.storage = storage_of(server, server.bucket())

    def land(self, *names: str) -> None:
        for name in names:
            self.storage.write_atomic(f"in/{name}", b"{}")

    def look(self) -> tuple[FileArrivals, ReadLog]:
        log = ReadLog(CheckpointFiles(self.storage, "checkpoint").newest_seen_files(0))
        source = Source.model_validate(
            {"format": "text", "path": "in", "order": "name", "names_late": "1 minute"}, strict=False
        )
        return arrivals(SourceListing(self.storage, source), log, no_marks, YEAR_2020), log


def no_marks(_: object) -> dict[str, FileMark]:
    return {}


def names(found: FileArrivals) -> list[str]:
    return [info.name for info in found.new]


@pytest.fixture
def landing(s3: Moto) -> Landing:
    """Its log of seen files has 30,000 files, read one after another."""
    landing = Landing(s3)
    of_many(landing.storage)
    return landing


def test_a_younger_file_is_new_by_the_end_of_the_log(landing: Landing) -> None:
    landing.land("000003.json", "029999.json", "x.json")
    landing.server.mark()
    found, log = landing.look()
    assert names(found) == ["x.json"]
    assert len(log.files) < MANY / 2
    assert landing.server.requests("*/sources/*")["GET"] == 3, "the end of one file, and two small ones"


def test_nothing_new_is_known_by_the_end_of_the_log(landing: Landing) -> None:
    landing.land("029999.json")
    found, log = landing.look()
    assert names(found) == []
    assert len(log.files) < MANY / 2


def test_a_file_that_is_not_younger_is_looked_for_in_the_whole_log(landing: Landing) -> None:
    """Both are older than a file that was read; one of them was read long before."""
    storage = landing.storage
    write(storage, "12", 12, [(storage.path("in/030012"), 4_000_000_000_000)])
    head, _, rest = storage.read_bytes(f"{FOLDER}/9.compact").partition(b"000003.json")
    storage.write_atomic(f"{FOLDER}/9.compact", head + b"z-read.json" + rest)
    landing.land("z-read.json", "z-new.json")
    found, log = landing.look()
    # By the time of the file that is far ahead, both are too old.
    assert [info.name for info in found.too_old] == ["z-new.json"]
    assert len(log.files) == MANY + 3


def test_a_log_whose_files_came_all_at_once_is_read_whole(s3: Moto) -> None:
    """No name was passed, so everything is listed."""
    landing = Landing(s3)
    path = landing.storage.path
    write(landing.storage, "0", 0, [(path(f"in/{n:06}.json"), YEAR_2020) for n in range(MANY)])
    landing.land("000003.json", "x.json")
    found, log = landing.look()
    assert (found.after, names(found), len(log.files)) == ("", ["x.json"], MANY)
