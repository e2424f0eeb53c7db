"""The commands of docs/recovery.md, typed one after the other over a checkpoint as Spark writes it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from drawdown.cli.commands.maintenance import checkpoint
from drawdown.cli.main import app
from drawdown.errors import RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch
from drawdown.spec import load_project

PAGE = Path(__file__).parents[2] / "docs/recovery.md"
PIPELINE = """
sources: {events: {format: text, path: landing}}
transform: transform.sql
sink: {format: text, path: out}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stateless pipeline with one committed batch, all of it text."""
    folder = tmp_path / "include/pipelines/sales"
    folder.mkdir(parents=True)
    (tmp_path / "include/project.yaml").write_text("storage_root: storage\n")
    (folder / "pipeline.yaml").write_text(PIPELINE)
    (folder / "transform.sql").write_text("SELECT value FROM events")
    path = "_drawdown/sales/checkpoint-1"
    offsets = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n{"logOffset":0}'
    files = {
        f"{path}/metadata": '{"id":"q"}',
        f"{path}/offsets/0": offsets,
        f"{path}/commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
        f"{path}/sources/0/0": 'v1\n{"path":"file:///the/old/root/a","timestamp":1,"batchId":0}',
        "out/_spark_metadata/0": "v1",
    }
    for name, text in files.items():
        file = tmp_path / "storage" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.chdir(tmp_path)
    with Metastore.open(load_project(tmp_path).metastore_url) as metastore:
        lease = metastore.acquire("sales", "a test", "a-run", load_project(tmp_path).lease_ttl.delta)
        metastore.create_checkpoint(lease, 1, path, {"source_order": ["events"]})
        batch = Batch("sales", 1, 0, "a-run", lease.epoch, offsets_to=[{"logOffset": 0}])
        metastore.note_batch(lease, batch, [], {})
        metastore.mark_committed(lease, 1, 0)
        metastore.release(lease)
    return tmp_path


def test_the_commands_of_the_page_do_what_it_says(project: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines()]
    assert len(commands) == 7
    for command in commands:
        words = shlex.split(command.replace("NAME", "sales"))
        done = CliRunner().invoke(app, words[1:])
        assert done.exit_code == 0, f"{command}: {done.output} {done.exception}"


def test_a_batch_that_is_not_kept_is_not_gone_back_to(project: Path) -> None:
    assert "checkpoint.not-kept" in refusal(project, "rewind", "sales", "--to", "7")
    (project / "storage/_drawdown/sales/checkpoint-1/offsets/0").unlink()
    assert "no committed batch is completely kept" in refusal(project, "rewind", "sales", "--to", "0")


def test_a_rewind_with_several_watermarks_needs_a_snapshot(project: Path) -> None:
    folder = project / "include/pipelines/sales"
    source = "{format: json, path: landing, schema: a.ddl, watermark: {column: at, delay: 1 hour}}"
    (folder / "a.ddl").write_text("at TIMESTAMP, value STRING")
    spec = PIPELINE.replace("{format: text, path: landing}", f"{source}, others: {source}")
    (folder / "pipeline.yaml").write_text(spec)
    said = refusal(project, "rewind", "sales", "--to", "0")
    assert "checkpoint.event-times" in said
    assert "drawdown checkpoint show sales" in said


def refusal(project: Path, *words: str) -> str:
    """What a command says that is refused and changes no file."""
    before = {path: path.stat().st_mtime_ns for path in (project / "storage").rglob("*")}
    done = CliRunner().invoke(app, ["checkpoint", *words])
    assert {path: path.stat().st_mtime_ns for path in (project / "storage").rglob("*")} == before
    assert isinstance(done.exception, RefusedError)
    return str(done.exception)


def test_every_command_is_on_the_page() -> None:
    offered = {command.name or command.callback.__name__ for command in checkpoint.app.registered_commands}
    named = set(re.findall(r"^\| `(\w+)", PAGE.read_text(), re.MULTILINE))
    assert offered <= named
