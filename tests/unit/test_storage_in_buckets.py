"""Storage in a bucket of a real server: files as on a disk, put if absent, errors that say what to do."""

from __future__ import annotations

import threading

import pytest

from drawdown.errors import RefusedError, SourceError
from drawdown.storage import Storage
from drawdown.storage.put_if_absent import refuse_unsafe
from tests.support.buckets import access_to
from tests.support.s3_proxy import ACCESS_DENIED, EXPIRED_TOKEN, LoseAnswer, Rule, S3Proxy, Strip
from tests.support.s3_servers import S3Endpoint, S3Server


def reached(server: S3Endpoint, bucket: str) -> Storage:
    return Storage(f"s3://{bucket}/root", access_to(server, bucket))


@pytest.fixture
def bucket(any_s3: S3Server) -> str:
    return any_s3.bucket()


@pytest.fixture
def storage(any_s3: S3Server, bucket: str) -> Storage:
    return reached(any_s3, bucket)


def names(storage: Storage, folder: str, depth: int | None = None) -> list[str]:
    return sorted(info.relative for info in storage.walk(folder, depth))


def test_spark_gets_the_name_of_hadoops_client_and_paths_come_back_relative(
    storage: Storage, bucket: str
) -> None:
    assert storage.path("a/b") == f"s3a://{bucket}/root/a/b"
    assert storage.relative(f"s3a://{bucket}/root/a/b") == "a/b"


@pytest.mark.parametrize("name", ["x 1%.csv", "a+b=c.csv", "día.csv", "x%20y", "k=v/é y.csv"])
def test_a_name_is_written_listed_and_read_as_it_is(storage: Storage, name: str) -> None:
    storage.write_atomic(f"in/{name}", b"12345")
    assert names(storage, "in") == [f"in/{name}"]
    assert storage.read_bytes(f"in/{name}") == b"12345"
    info = storage.info(f"in/{name}")
    assert info is not None
    assert (info.size, info.name) == (5, name.rsplit("/", maxsplit=1)[-1])
    assert info.mtime_ms > 1_700_000_000_000


def test_depth_counts_levels_and_a_file_is_its_own_folder(storage: Storage) -> None:
    for name in ("a", "b/c", "b/d/e"):
        storage.write_atomic(f"in/{name}", b"x")
    assert names(storage, "in", 1) == ["in/a"]
    assert names(storage, "in", 2) == ["in/a", "in/b/c"]
    assert names(storage, "in") == ["in/a", "in/b/c", "in/b/d/e"]
    assert names(storage, "in/a") == names(storage, "in/a", 1) == ["in/a"]
    assert names(storage, "nothing") == []
    assert (storage.exists("in"), storage.exists("in/b"), storage.exists("in/x")) == (True, True, False)


def test_what_stands_for_a_folder_is_no_file_and_an_empty_file_is_one(
    any_s3: S3Server, bucket: str, storage: Storage
) -> None:
    client = any_s3.client(bucket)
    for key in ("root/in/", "root/in/sub/", "root/in/empty-folder/"):
        client.put(key, b"")
    storage.write_atomic("in/sub/a", b"x")
    storage.write_atomic("in/zero", b"")
    assert names(storage, "in") == ["in/sub/a", "in/zero"]
    assert names(storage, "in", 1) == ["in/zero"]
    assert not storage.exists("in/empty-folder")


def test_deleting_takes_files_and_whole_folders_and_forgives_absence(storage: Storage) -> None:
    for name in ("a/b/c", "a/b/d", "a/bc"):
        storage.write_atomic(name, b"x")
    storage.delete("a/b")
    storage.delete("a/b")
    assert names(storage, "a") == ["a/bc"]
    with pytest.raises(RefusedError, match="root itself"):
        storage.delete("")


def test_a_file_is_copied_and_read_in_parts(storage: Storage) -> None:
    content = bytes(range(256)) * 10_000
    storage.write_atomic("big", content)
    storage.copy("big", "other/copy")
    with storage.open("other/copy") as stream:
        stream.seek(-10, 2)
        assert stream.read() == content[-10:]
        stream.seek(1_000_000)
        assert stream.read(5) == content[1_000_000:1_000_005]
    with pytest.raises(FileNotFoundError):
        storage.open("nothing").read()
    with pytest.raises(FileNotFoundError):
        storage.read_bytes("nothing")


def test_of_many_who_create_a_file_one_succeeds(storage: Storage) -> None:
    won: list[int] = []

    def create(number: int) -> None:
        if storage.create("commits/7", str(number).encode()):
            won.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert storage.read_bytes("commits/7") == str(won[0]).encode()


def test_a_listing_sees_at_once_what_another_client_has_written(
    any_s3: S3Server, bucket: str, storage: Storage
) -> None:
    """As Spark's JVM writes behind this process."""
    client = any_s3.client(bucket)
    for number in range(3):
        assert len(names(storage, "in")) == number
        client.put(f"root/in/{number}", b"x")
        assert storage.exists(f"in/{number}")
    client.delete("root/in/0")
    assert names(storage, "in") == ["in/1", "in/2"]


@pytest.mark.capability("OBJ-15")
def test_a_storage_without_conditional_puts_is_refused(s3: S3Server, s3_proxy: S3Proxy) -> None:
    bucket = s3.bucket()
    refuse_unsafe(reached(s3, bucket))
    s3.mark()
    refuse_unsafe(reached(s3, bucket))
    assert s3.requests().total() == 1
    s3_proxy.add(Rule(Strip()))
    for storage in (reached(s3_proxy, bucket), reached(s3_proxy, s3.bucket())):
        with pytest.raises(RefusedError, match="If-None-Match") as caught:
            refuse_unsafe(storage)
        assert caught.value.id == "storage.unsafe"
        assert names(storage, "") == ["_drawdown/.put-if-absent"]


def test_a_missing_bucket_is_named(s3: S3Server) -> None:
    storage = reached(s3, "no-such-bucket")
    for ask in (
        lambda: names(storage, ""),
        lambda: storage.read_bytes("x"),
        lambda: storage.create("x", b""),
    ):
        with pytest.raises(SourceError) as caught:
            ask()
        assert caught.value.id == "storage.no-bucket"
        assert caught.value.exit_code == 5


@pytest.mark.parametrize(
    ("effect", "says"), [(ACCESS_DENIED, "AccessDenied"), (EXPIRED_TOKEN, "ExpiredToken")]
)
def test_a_key_that_may_not_is_told_in_one_sentence(
    s3: S3Server, s3_proxy: S3Proxy, effect: object, says: str
) -> None:
    storage = reached(s3_proxy, s3.bucket())
    storage.write_atomic("a", b"x")
    s3_proxy.add(Rule(effect, kinds=("PUT", "DELETE", "POST")))
    for ask in (lambda: storage.write_atomic("b", b"x"), lambda: storage.delete("a")):
        with pytest.raises(SourceError, match=says) as caught:
            ask()
        assert caught.value.id == "storage.denied"
        assert "\n" not in caught.value.what
        assert s3.secret_key not in str(caught.value)
    assert storage.read_bytes("a") == b"x"


def test_a_file_whose_creation_has_no_answer_is_there_as_a_whole_and_the_caller_hears_of_it(
    s3: S3Server, s3_proxy: S3Proxy
) -> None:
    """Whether it was created cannot be known: a second try would meet the caller's own file."""
    storage = reached(s3_proxy, s3.bucket())
    s3_proxy.add(Rule(LoseAnswer(), kinds=("PUT",), times=1))
    with pytest.raises(SourceError) as caught:
        storage.create("a", b"mine")
    assert caught.value.id == "storage.unreachable"
    assert storage.read_bytes("a") == b"mine"
