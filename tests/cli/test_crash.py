"""`drawdown test --crash`: a pipeline's own cases with a kill at fault points."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.test_commands import refused
from tests.support.command_line import answer, drawdown

STEADY = """
from pyspark.sql import functions as F


def transform(sources):
    return sources["words"].select("word", F.lit(True).alias("first"))
"""
# In the process that is to be killed, it ends all as if the work were done.
ENDS_EARLY = f"""
import os

if "DRAWDOWN_FAULT" in os.environ:
    os._exit(0)
{STEADY}
"""
# Says which process made the plan of a batch: a run after a crash makes other rows.
TELLTALE = """
import os
from pathlib import Path

from pyspark.sql import functions as F

SEEN = Path({path!r})


def transform(sources):
    if not SEEN.exists():
        SEEN.write_text(str(os.getpid()))
    made = sources["words"].select("word", F.lit(int(SEEN.read_text()) == os.getpid()).alias("first"))
    return made
"""


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """A project with one pipeline, whose only case has one wave."""
    folder = tmp_path / "include/pipelines/words"
    (folder / "tests/first").mkdir(parents=True)
    (tmp_path / "include/project.yaml").write_text(
        "storage_root: storage\nmetastore: sqlite:///.drawdown/metastore.db\n"
    )
    (folder / "pipeline.yaml").write_text(
        "sources: {words: {format: json, path: landing/words, schema: words.ddl}}\n"
        "transform: transform.py\nsink: {format: delta, path: tables/words, schema: out.ddl}\n"
    )
    (folder / "words.ddl").write_text("word STRING")
    (folder / "out.ddl").write_text("word STRING, first BOOLEAN")
    (folder / "transform.py").write_text(STEADY)
    (folder / "tests/first/case.yaml").write_text("waves: [{words: [a.jsonl]}]\n")
    (folder / "tests/first/a.jsonl").write_text('{"word": "a"}\n')
    (folder / "tests/first/wave1.expected.csv").write_text("word,first\na,true\n")
    return tmp_path


@pytest.mark.full
def test_a_case_goes_on_after_a_kill_and_points_that_are_not_reached_are_named(words: Path) -> None:
    at = ["--at", "after batch.note", "--at", "before batch.show"]
    done = drawdown(words, "test", "words", "--crash", *at, "--json", timeout=600)
    assert done.returncode == 1, "a point that is named and never reached shows nothing"
    assert "test.not-reached" in done.stderr
    found = {result["point"]: result for result in answer(done.stdout)}
    assert {point: (result["kills"], result["passed"]) for point, result in found.items()} == {
        "after batch.note": (1, True),
        "before batch.show": (0, True),  # this sink is published after its audit
    }
    assert not (words / ".drawdown/metastore.db").exists(), "a test leaves the project alone"
    assert not (words / "storage").exists()


@pytest.mark.full
def test_a_pipeline_that_makes_other_rows_after_a_crash_is_shown(words: Path) -> None:
    transform = words / "include/pipelines/words/transform.py"
    transform.write_text(TELLTALE.format(path=str(words / "seen")))
    done = drawdown(words, "test", "words", "--crash", "--at", "after batch.stage", timeout=600)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "✗ words/first: killed after batch.stage in 1 of 1 wave" in done.stdout
    assert re.search(r"~ word=a\n +first: expected true, found false\n", done.stdout)
    assert "0 recovered, 0 not reached, 1 differ" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "id"),
    [
        (["--crash", "--at", "after batch.noted"], "test.no-point"),
        (["--at", "after batch.note"], "test.at"),
    ],
)
def test_a_point_that_cannot_be_meant_is_one_error(tmp_path: Path, arguments: list[str], id: str) -> None:
    refused(drawdown(tmp_path, "test", *arguments), 2, id)


def test_a_drain_that_never_ran_is_no_kill(words: Path) -> None:
    (words / "include/pipelines/words/transform.py").write_text(ENDS_EARLY)
    done = drawdown(words, "test", "words", "--crash", "--at", "after batch.note", timeout=600)
    assert done.returncode == 1, done.stdout
    assert "test.not-killed" in done.stderr
    assert "ended by itself before that" in done.stderr
