"""Storage in a bucket: the same files as on a disk, whatever keys, markers and errors a real server has."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from drawdown.errors import RefusedError, SourceError
from drawdown.spec.connections.object_storage import ObjectStorage
from drawdown.storage import Storage
from drawdown.storage.put_if_absent import refuse_unsafe
from tests.support.buckets import access_to, storage_of
from tests.support.s3_client import S3Client
from tests.support.s3_proxy import ACCESS_DENIED, EXPIRED_TOKEN, Refuse, Rule, S3Proxy, Strip
from tests.support.s3_servers import Moto, S3Server, Versitygw

ODD = ["a b", "50%", "%41", "a+b", "é ü.csv", "日本", "a=1&b#c", "'quoted'", "day=2024-01-01%3A00"]
"""Names of files that some part of a path to a server would decode, encode or cut."""


@pytest.fixture
def client(any_s3: S3Server) -> S3Client:
    return any_s3.client(any_s3.bucket())


@pytest.fixture
def storage(any_s3: S3Server, client: S3Client) -> Storage:
    return storage_of(any_s3, client.bucket)


def names(storage: Storage, path: str, depth: int | None = None) -> list[str]:
    return sorted(info.relative for info in storage.walk(path, depth))


def failure(storage: Storage) -> SourceError:
    with pytest.raises(SourceError) as caught:
        list(storage.walk("a"))
    return caught.value


def test_a_folder_is_walked_whole_or_some_levels_down(storage: Storage) -> None:
    for name in ("a/1", "a/b/2", "a/b/c/3", "ab/4", "a.csv"):
        storage.write_atomic(name, b"x")
    assert names(storage, "") == ["a.csv", "a/1", "a/b/2", "a/b/c/3", "ab/4"]
    assert names(storage, "a") == ["a/1", "a/b/2", "a/b/c/3"]
    assert [names(storage, "a", depth) for depth in (1, 2)] == [["a/1"], ["a/1", "a/b/2"]]
    assert names(storage, "a/b/2") == names(storage, "a/b/2", 1) == ["a/b/2"]
    assert names(storage, "nothing") == names(storage, "nothing", 1) == []


def test_what_stands_for_a_folder_is_no_file_and_an_empty_file_is_one(
    storage: Storage, client: S3Client
) -> None:
    for key in ("root/a/", "root/a/m/", "root/a/empty", "root/a/m/1", "root/a/late/"):
        client.put(key)
    storage.write_atomic("a/z", b"x")
    assert names(storage, "a") == ["a/empty", "a/m/1", "a/z"]
    assert names(storage, "a", 1) == ["a/empty", "a/z"]
    assert names(storage, "a/m", 1) == ["a/m/1"]
    assert (storage.exists("a/empty"), storage.read_bytes("a/empty")) == (True, b"")


@pytest.mark.parametrize("name", ODD)
def test_a_name_is_the_same_in_a_put_a_listing_a_copy_and_a_delete(
    storage: Storage, client: S3Client, name: str
) -> None:
    storage.write_atomic(f"in/{name}", b"one")
    assert client.keys() == [f"root/in/{name}"], "as the server has it"
    assert names(storage, "in") == names(storage, "in", 1) == [f"in/{name}"]
    storage.copy(f"in/{name}", f"out/{name}/copy")
    assert storage.read_bytes(f"out/{name}/copy") == b"one"
    assert names(storage, f"out/{name}") == [f"out/{name}/copy"]
    assert not storage.create(f"in/{name}", b"two")
    storage.delete(f"in/{name}")
    storage.delete(f"out/{name}")
    assert client.keys() == []


def test_a_folder_is_deleted_with_its_content_and_nothing_that_is_named_alike(storage: Storage) -> None:
    for name in ("a/1", "a/b/2", "ab/3", "a.csv"):
        storage.write_atomic(name, b"x")
    storage.delete("a")
    storage.delete("a")
    assert names(storage, "") == ["a.csv", "ab/3"]
    assert not storage.exists("a")
    with pytest.raises(RefusedError) as caught:
        storage.delete("")
    assert caught.value.id == "storage.delete-root"


@pytest.mark.full
def test_more_objects_than_a_listing_or_a_delete_takes_at_once(storage: Storage) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: storage.write_atomic(f"many/{n:04}", b""), range(1_050)))
    assert len(names(storage, "many")) == len(names(storage, "many", 1)) == 1_050
    storage.delete("many")
    assert names(storage, "many") == []


def test_a_file_is_read_from_any_place(storage: Storage) -> None:
    content = bytes(range(256)) * 20_000
    storage.write_atomic("f", content)
    with storage.open("f") as stream:
        assert stream.read(10) == content[:10]
        assert (stream.seek(-256, 2), stream.read()) == (len(content) - 256, content[-256:])
        assert (stream.seek(3_000_000), stream.read(1_000)) == (3_000_000, content[3_000_000:3_001_000])
    with pytest.raises(FileNotFoundError):
        storage.open("nothing")
    with pytest.raises(FileNotFoundError):
        storage.read_bytes("nothing")
    with pytest.raises(FileNotFoundError):
        storage.copy("nothing", "x")


@pytest.mark.capability("OBJ-14")
def test_of_many_who_create_a_file_one_succeeds(storage: Storage) -> None:
    with ThreadPoolExecutor(32) as pool:
        won = list(pool.map(lambda n: storage.create("lock", b"%d" % n), range(32)))
    assert won.count(True) == 1
    assert storage.read_bytes("lock") == b"%d" % won.index(True)


@pytest.mark.capability("OBJ-15")
def test_a_bucket_that_does_not_exist_is_named(any_s3: S3Server) -> None:
    storage = storage_of(any_s3, "no-such-bucket")
    error = failure(storage)
    assert (error.id, error.exit_code) == ("storage.no-bucket", 5)
    for attempt in (
        lambda: storage.create("a", b""),
        lambda: storage.read_bytes("a"),
        lambda: storage.exists("a"),
        lambda: list(storage.walk("a", 1)),
    ):
        with pytest.raises(SourceError, match="bucket does not exist"):
            attempt()


@pytest.mark.capability("OBJ-15")
@pytest.mark.parametrize("refusal", [ACCESS_DENIED, EXPIRED_TOKEN, Refuse(403, "InvalidAccessKeyId")])
def test_a_key_that_is_refused_is_named_once_and_not_tried_again(
    s3: Moto, s3_proxy: S3Proxy, refusal: Refuse
) -> None:
    storage = storage_of(s3_proxy, s3.bucket())
    refused = s3_proxy.add(Rule(refusal))
    error = failure(storage)
    assert (error.id, error.exit_code) == ("storage.denied", 5)
    assert refusal.code in error.what
    assert refused.struck == 1, "no number of retries makes it right"


@pytest.mark.capability("OBJ-15")
@pytest.mark.parametrize("what", ["PUT", "DELETE"])
def test_a_key_without_the_right_to_write_or_delete_is_refused_there(
    s3: Moto, s3_proxy: S3Proxy, what: str
) -> None:
    storage = storage_of(s3_proxy, s3.bucket())
    storage.write_atomic("a", b"x")
    s3_proxy.add(Rule(ACCESS_DENIED, kinds=(what,)))  # type: ignore[arg-type]
    assert storage.read_bytes("a") == b"x"
    with pytest.raises(SourceError) as caught:
        storage.write_atomic("a", b"y") if what == "PUT" else storage.delete("a")
    assert caught.value.id == "storage.denied"


@pytest.mark.capability("OBJ-15")
@pytest.mark.full
def test_a_wrong_key_is_refused_by_a_server_that_checks_it(versitygw: Versitygw) -> None:
    bucket = versitygw.bucket()
    for wrong in ({"secret_key": "not-the-secret"}, {"access_key": "nobody"}):
        known = access_to(versitygw, bucket).model_dump() | {"secret_key": versitygw.secret_key} | wrong
        storage = Storage(f"s3://{bucket}/root", ObjectStorage.model_validate(known))
        assert failure(storage).id == "storage.denied"


@pytest.mark.capability("OBJ-15")
def test_a_server_that_ignores_the_condition_is_refused_with_nothing_but_the_probe(
    s3: Moto, s3_proxy: S3Proxy
) -> None:
    bucket = s3.bucket()
    storage = storage_of(s3_proxy, bucket)
    refuse_unsafe(storage)
    s3_proxy.add(Rule(Strip(("if-none-match",))))
    with pytest.raises(RefusedError) as caught:
        refuse_unsafe(storage)
    assert (caught.value.id, caught.value.exit_code) == ("storage.unsafe", 3)
    assert s3.client(bucket).keys() == ["root/_drawdown/.put-if-absent"]
