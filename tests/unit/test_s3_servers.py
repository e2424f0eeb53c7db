"""The S3 servers of the tests do what S3 promises and Drawdown rests on."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from signal import SIGKILL

import pytest

from drawdown.errors import MachineError
from tests.support import go_programs
from tests.support.s3_client import S3Refusal
from tests.support.s3_requests import S3Request
from tests.support.s3_servers import Moto, S3Server, Versitygw
from tests.support.waiting import until

WRITERS = 32
PART = 5 * 2**20
"""The smallest part that S3 takes, other than the last one."""

STARTS_A_SERVER = """
import time
from tests.support.s3_servers import Moto
with Moto() as server:
    print(server.endpoint, server.folder, server._background.pid(), flush=True)
    time.sleep(600)
"""


def test_what_was_written_is_read_listed_and_deleted(any_s3: S3Server) -> None:
    client = any_s3.client(any_s3.bucket())
    keys = ["tables/a b+c.parquet", "tables/h=1/ü.parquet", "zones.csv"]
    for key in keys:
        client.put(key, key.encode())
    assert [client.get(key).decode() for key in keys] == keys
    assert client.keys() == keys
    assert client.keys("tables/") == keys[:2]
    assert client.keys(start_after=keys[0]) == keys[1:]
    client.delete(keys[0])
    with pytest.raises(S3Refusal) as caught:
        client.get(keys[0])
    assert (caught.value.status, caught.value.code) == (404, "NoSuchKey")


def test_of_writers_at_the_same_time_one_creates_the_object(any_s3: S3Server) -> None:
    client = any_s3.client(any_s3.bucket())
    for key in ("commits/0", "commits/1", "commits/2"):
        with ThreadPoolExecutor(WRITERS) as pool:
            won = list(
                pool.map(lambda n, key=key: client.put_new(key, f"writer {n}".encode()), range(WRITERS))
            )
        assert won.count(True) == 1
        assert client.get(key) == f"writer {won.index(True)}".encode()


def test_an_object_is_replaced_only_by_who_has_read_its_last_version(any_s3: S3Server) -> None:
    client = any_s3.client(any_s3.bucket())
    first = client.put("lease", b"first")
    client.put("lease", b"second", if_match=first)
    with pytest.raises(S3Refusal) as caught:
        client.put("lease", b"third", if_match=first)
    assert (caught.value.status, caught.value.code) == (412, "PreconditionFailed")
    assert client.get("lease") == b"second"


def test_of_multipart_uploads_too_one_creates_the_object(any_s3: S3Server) -> None:
    client = any_s3.client(any_s3.bucket())
    uploads = [client.start_upload("large") for _ in range(2)]
    assert client.uploads() == ["large", "large"]
    etags = [[client.put_part("large", upload, 1, b"x" * PART)] for upload in uploads]
    answers = [
        client.complete_upload("large", upload, etag, if_none_match="*").status
        for upload, etag in zip(uploads, etags, strict=True)
    ]
    assert answers == [200, 412]
    assert len(client.get("large")) == PART


def test_requests_are_counted_by_kind_since_the_mark(any_s3: S3Server) -> None:
    client = any_s3.client(any_s3.bucket())
    client.put("before")
    any_s3.mark()
    client.put("a/b c")
    client.put_new("a/b c")
    client.get("a/b c")
    client.send("HEAD", "a/none")
    client.keys("a/")
    client.start_upload("b/1")
    client.delete("a/b c")
    expected = {"PUT": 2, "GET": 1, "HEAD": 1, "LIST": 1, "POST": 1, "DELETE": 1}
    until(lambda: any_s3.requests() == expected, 5)
    assert any_s3.requests("a/*") == {kind: times for kind, times in expected.items() if kind != "POST"}


def test_what_a_request_line_is_about() -> None:
    lines = {
        "GET /": "LIST",
        "GET /b?list-type=2&prefix=a%2Fb": "LIST",
        "GET /b/?uploads": "LIST",
        "GET /b/k%20k": "GET",
        "HEAD /b/k": "HEAD",
        "PUT /b/k?partNumber=1&uploadId=u": "PUT",
        "POST /b/k?uploads=": "POST",
        "POST /b?delete": "DELETE",
        "DELETE /b/k": "DELETE",
    }
    requests = [S3Request.of(*line.split()) for line in lines]
    assert [request.kind for request in requests] == list(lines.values())
    assert [request.key for request in requests[1:4]] == ["a/b", "", "k k"]


def test_a_server_ends_with_its_process_even_when_that_is_killed(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", STARTS_A_SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        guard = Path("/proc") / process.stdout.readline().split()[2]
        assert guard.exists()
        process.send_signal(SIGKILL)
    until(lambda: not guard.exists(), 20)


def test_a_server_leaves_nothing_behind() -> None:
    with Moto() as server:
        folder = server.folder
        server.bucket()
    assert not folder.exists()
    with pytest.raises(OSError, match="refused"):
        server.bucket()


def test_without_go_the_package_to_install_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(go_programs, "FOLDER", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError) as caught:
        go_programs.built(go_programs.VERSITYGW)
    assert caught.value.id == "tests.no-go"
    assert caught.value.do.startswith("apt-get install golang")


def test_a_build_that_fails_is_tried_again_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(go_programs, "FOLDER", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho no module proxy\nexit 1\n")
    go.chmod(0o755)
    for _ in range(2):
        with pytest.raises(MachineError) as caught:
            go_programs.built(go_programs.VERSITYGW)
        assert caught.value.id == "tests.go-build"
        assert Path(caught.value.where).read_text() == "no module proxy\n"


@pytest.mark.full
def test_objects_on_disk_survive_a_stop_and_are_files(versitygw: Versitygw) -> None:
    bucket = versitygw.bucket()
    versitygw.client(bucket).put("a/written", b"by a client")
    (versitygw.objects / bucket / "a" / "placed").write_bytes(b"by a test")
    versitygw.stop()
    versitygw.start()
    assert versitygw.client(bucket).keys() == ["a/placed", "a/written"]
    assert (versitygw.objects / bucket / "a" / "written").read_bytes() == b"by a client"


@pytest.mark.full
def test_a_wrong_key_is_refused(versitygw: Versitygw) -> None:
    client = versitygw.client(versitygw.bucket())
    client.put("mine")
    object.__setattr__(client, "secret_key", "guessed")
    with pytest.raises(S3Refusal) as caught:
        client.get("mine")
    assert (caught.value.status, caught.value.code) == (403, "SignatureDoesNotMatch")
