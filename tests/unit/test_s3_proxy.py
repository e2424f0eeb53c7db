"""The proxy in front of an S3 server hurts what its rules name, and nothing else."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from urllib.parse import urlsplit

import pytest

from tests.support.s3_client import S3Client, S3Refusal
from tests.support.s3_proxy import (
    ACCESS_DENIED,
    EXPIRED_TOKEN,
    SLOW_DOWN,
    Delay,
    LoseAnswer,
    Reset,
    Rule,
    S3Proxy,
    Strip,
)
from tests.support.s3_servers import S3Server

LARGE = bytes(range(256)) * 4096
RESET = (ConnectionResetError, BrokenPipeError, HTTPException)


@pytest.fixture
def proxy(any_s3: S3Server) -> Iterator[S3Proxy]:
    with S3Proxy(any_s3) as running:
        yield running


@pytest.fixture
def client(proxy: S3Proxy) -> S3Client:
    return proxy.client(proxy.bucket())


@pytest.fixture
def behind(any_s3: S3Server, client: S3Client) -> S3Client:
    """What the server has, without the proxy."""
    return any_s3.client(client.bucket)


def refused(client: S3Client, method: str, key: str) -> tuple[int, str]:
    answer = client.send(method, key)
    return answer.status, answer.code


def test_without_rules_everything_passes_as_it_is(client: S3Client, behind: S3Client) -> None:
    client.put("a/b c+ü", LARGE)
    assert behind.get("a/b c+ü") == client.get("a/b c+ü") == LARGE
    assert int(client.send("HEAD", "a/b c+ü").headers["Content-Length"]) == len(LARGE)
    assert client.keys() == behind.keys() == ["a/b c+ü"]
    client.delete("a/b c+ü")
    assert behind.keys() == []


def test_of_writers_at_the_same_time_one_creates_the_object_here_too(client: S3Client) -> None:
    with ThreadPoolExecutor(32) as pool:
        won = list(pool.map(lambda n: client.put_new("commits/0", str(n).encode()), range(32)))
    assert won.count(True) == 1
    assert client.get("commits/0") == str(won.index(True)).encode()


def test_the_server_slows_down_for_so_many_requests_with_such_keys(proxy: S3Proxy, client: S3Client) -> None:
    rule = proxy.add(Rule(SLOW_DOWN, kinds={"PUT"}, key="*/commits/*", skip=1, times=2))
    sent = [client.send("PUT", "checkpoint/commits/7").status for _ in range(5)]
    assert sent == [200, 503, 503, 200, 200]
    assert rule.struck == 2
    proxy.add(Rule(SLOW_DOWN, kinds={"PUT"}, key="*/commits/*"))
    assert refused(client, "PUT", "checkpoint/commits/8") == (503, "SlowDown")
    assert refused(client, "GET", "checkpoint/commits/7") == (200, "")
    assert refused(client, "PUT", "checkpoint/offsets/8") == (200, "")


def test_a_listing_is_slowed_down_by_its_prefix(proxy: S3Proxy, client: S3Client) -> None:
    proxy.add(Rule(SLOW_DOWN, kinds={"LIST"}, key="landing/*", times=1))
    assert client.keys("tables/") == []
    with pytest.raises(S3Refusal) as caught:
        client.keys("landing/")
    assert caught.value.code == "SlowDown"
    assert client.keys("landing/") == []


def test_a_delayed_answer_comes_late_and_the_next_in_time(proxy: S3Proxy, client: S3Client) -> None:
    proxy.add(Rule(Delay(0.5), times=1))
    began = time.monotonic()
    client.put("a")
    assert time.monotonic() - began >= 0.5
    proxy.add(Rule(Delay(600), times=1))
    with socket.create_connection(_address(proxy), timeout=0.5) as connection:
        connection.sendall(b"GET /nothing/here HTTP/1.1\r\nHost: here\r\n\r\n")
        with pytest.raises(TimeoutError):
            connection.recv(1)
    client.put("b")


@pytest.mark.parametrize("after", [0, 100_000, 2 * len(LARGE)], ids=["at once", "midway", "at the end"])
def test_a_reset_in_the_middle_of_a_put_writes_nothing(
    after: int, proxy: S3Proxy, client: S3Client, behind: S3Client
) -> None:
    client.put("a", b"before")
    proxy.add(Rule(Reset(after), kinds={"PUT"}, times=1))
    with pytest.raises(RESET):
        client.put("a", LARGE)
    assert behind.get("a") == b"before"
    client.put("a", LARGE)
    assert behind.get("a") == LARGE


def test_a_multipart_upload_that_dies_leaves_its_parts(
    proxy: S3Proxy, client: S3Client, behind: S3Client
) -> None:
    proxy.add(Rule(Reset(1000), kinds={"PUT"}, skip=1))
    upload = client.start_upload("large")
    client.put_part("large", upload, 1, LARGE)
    with pytest.raises(RESET):
        client.put_part("large", upload, 2, LARGE)
    assert (behind.uploads(), behind.keys()) == (["large"], [])


def test_a_lost_answer_is_of_a_request_that_was_done(
    proxy: S3Proxy, client: S3Client, behind: S3Client
) -> None:
    proxy.add(Rule(LoseAnswer(), kinds={"PUT"}, times=1))
    with pytest.raises(RESET):
        client.put_new("commits/0", b"mine")
    assert behind.get("commits/0") == b"mine"
    assert not client.put_new("commits/0", b"mine")


def test_storage_that_is_away_resets_every_connection_and_comes_back(
    proxy: S3Proxy, client: S3Client, behind: S3Client
) -> None:
    client.put("a")
    proxy.away(1.0)
    for method in ("GET", "PUT", "HEAD"):
        with pytest.raises(RESET):
            client.send(method, "a", b"x")
    assert behind.get("a") == b""
    time.sleep(1.0)
    assert client.get("a") == b""
    proxy.away()
    with pytest.raises(RESET):
        client.get("a")
    proxy.clear()
    assert client.get("a") == b""


def test_storage_that_goes_away_cuts_what_is_under_way(
    proxy: S3Proxy, client: S3Client, behind: S3Client
) -> None:
    with socket.create_connection(_address(proxy), timeout=20) as connection:
        begun = f"PUT /{client.bucket}/a HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\nhalf"
        connection.sendall(begun.encode())
        _wait_until_seen(proxy, "a")
        proxy.away()
        with pytest.raises(ConnectionResetError):
            connection.recv(1000)
    assert behind.keys() == []


def test_credentials_expire_after_a_moment(proxy: S3Proxy, client: S3Client) -> None:
    expired = proxy.add(Rule(EXPIRED_TOKEN, starts_in=0.5))
    client.put("a")
    time.sleep(0.5)
    assert refused(client, "GET", "a") == (400, "ExpiredToken")
    assert refused(client, "HEAD", "a") == (400, "")
    proxy.remove(expired)
    assert client.get("a") == b""


@pytest.mark.parametrize("kind", ["PUT", "DELETE"])
def test_a_key_without_a_right_is_denied_that_alone(kind: str, proxy: S3Proxy, client: S3Client) -> None:
    client.put("a", b"before")
    proxy.add(Rule(ACCESS_DENIED, kinds={kind}))  # type: ignore[arg-type]
    assert refused(client, kind, "a") == (403, "AccessDenied")
    assert client.get("a") == b"before"
    other = {"PUT": "DELETE", "DELETE": "PUT"}[kind]
    assert client.send(other, "a").status < 300


def test_a_denied_delete_is_denied_for_many_objects_too(proxy: S3Proxy, client: S3Client) -> None:
    client.put("a")
    proxy.add(Rule(ACCESS_DENIED, kinds={"DELETE"}))
    body = b"<Delete><Object><Key>a</Key></Object></Delete>"
    assert client.send("POST", "", body, query={"delete": ""}).code == "AccessDenied"
    assert client.keys() == ["a"]


def test_conditions_that_are_stripped_are_ignored(s3_proxy: S3Proxy) -> None:
    client = s3_proxy.client(s3_proxy.bucket())
    s3_proxy.add(Rule(Strip()))
    assert client.put_new("a", b"first")
    assert client.put_new("a", b"second")
    assert client.get("a") == b"second"
    s3_proxy.clear()
    assert not client.put_new("a", b"third")


def test_requests_are_counted_also_those_that_were_refused(proxy: S3Proxy, client: S3Client) -> None:
    proxy.mark()
    proxy.add(Rule(SLOW_DOWN, kinds={"GET"}))
    client.put("a/1")
    client.send("GET", "a/1")
    client.send("HEAD", "b/1")
    client.keys("a/")
    client.start_upload("b/2")
    client.delete("a/1")
    assert proxy.requests() == {"PUT": 1, "GET": 1, "HEAD": 1, "LIST": 1, "POST": 1, "DELETE": 1}
    assert proxy.requests("b/*") == {"HEAD": 1, "POST": 1}
    assert [request.method for request in proxy.seen("a/*")] == ["PUT", "GET", "GET", "DELETE"]


def test_a_connection_serves_many_requests_and_bodies_in_chunks(s3_proxy: S3Proxy) -> None:
    """As Java's clients do; Moto, since these are not signed."""
    bucket = s3_proxy.bucket()
    with socket.create_connection(_address(s3_proxy), timeout=20) as connection:
        answers = connection.makefile("rb")
        for n in range(3):
            head = f"PUT /{bucket}/{n} HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n"
            connection.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
            assert answers.readline().split()[1] == b"100"
            answers.readline()
            connection.sendall(b"5\r\nhello\r\n6; x=y\r\n world\r\n0\r\n\r\n")
            assert answers.readline().split()[1] == b"200"
            while answers.readline().strip():
                continue
    assert s3_proxy.client(bucket).get("2") == b"hello world"


def _address(proxy: S3Proxy) -> tuple[str, int]:
    host, _, port = urlsplit(proxy.endpoint).netloc.partition(":")
    return host, int(port)


def _wait_until_seen(proxy: S3Proxy, key: str) -> None:
    deadline = time.monotonic() + 20
    while not proxy.seen(key):
        assert time.monotonic() < deadline
        time.sleep(0.05)
