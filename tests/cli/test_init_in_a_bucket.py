"""`drawdown init --storage`: a new project whose files are in a bucket of a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.cli import main
from drawdown.spec import load_project
from drawdown.storage import Storage
from tests.support.s3_servers import S3Endpoint


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3: S3Endpoint) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRAWDOWN_PROJECT", raising=False)
    monkeypatch.setenv("DRAWDOWN_S3_ENDPOINT", s3.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.secret_key)


def typed(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["drawdown", *words])
    with pytest.raises(SystemExit) as ended:
        main.main()
    return int(ended.value.code or 0)


def test_the_example_lands_in_the_bucket_and_the_key_in_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3: S3Endpoint
) -> None:
    bucket = s3.bucket()
    assert typed(monkeypatch, "init", "sales", "--yes", "--storage", f"s3://{bucket}/drawdown") == 0
    project = load_project(tmp_path)
    found = [info.path for info in Storage.of(project).walk("landing")]
    assert found == [f"s3a://{bucket}/drawdown/landing/sales/sample.csv"]
    assert typed(monkeypatch, "validate") == 0
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(s3.secret_key in text for text in written)


@pytest.mark.parametrize(
    ("address", "id"), [("s3://no-such-bucket/x", "storage.no-bucket"), ("lake", "init.no-bucket")]
)
def test_what_is_wrong_with_the_bucket_is_said_before_anything_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    address: str,
    id: str,
) -> None:
    assert typed(monkeypatch, "init", "sales", "--yes", "--storage", address) != 0
    assert id in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_project_that_exists_keeps_its_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], s3: S3Endpoint
) -> None:
    assert typed(monkeypatch, "init", "sales", "--yes", "--storage", f"s3://{s3.bucket()}") == 0
    capsys.readouterr()
    assert typed(monkeypatch, "init", "more", "--yes", "--storage", f"s3://{s3.bucket()}") == 2
    assert "init.storage-is-set" in capsys.readouterr().err
    assert not (tmp_path / "include" / "pipelines" / "more").exists()
