"""A source kind and a sink kind that somebody adds as CONTRIBUTING.md says: a folder and one line each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import drawdown
from tests.support.command_line import DRAWDOWN

LIBRARY = Path(drawdown.__path__[0])
ADDED = Path(__file__).parents[1] / "fixtures" / "new_kinds"
PROJECT = "storage_root: storage\nmetastore: sqlite:///metastore.db\n"
PIPELINE = """\
sources:
  notes: {format: notes, path: landing, schema: "line STRING"}
sink: {format: journal, path: journal}
"""


class Copied:
    """A copy of the library with the two kinds, and a project that uses them."""

    def __init__(self, folder: Path) -> None:
        library, self.project = folder / "library" / "drawdown", folder / "project"
        shutil.copytree(LIBRARY, library, ignore=shutil.ignore_patterns("__pycache__"))
        for room, kind in (("sources", "notes"), ("sinks", "journal")):
            shutil.copytree(ADDED / kind, library / room / kind)
            registry = library / room / "registry.py"
            line = f'    "drawdown.{room}.{kind}.kind:KIND",\n)'
            registry.write_text(registry.read_text().replace("\n)", f"\n{line}", 1))
        home = {"PYTHONPATH": str(library.parent), "DRAWDOWN_HOME": str(LIBRARY.parents[1])}
        self._environment = {**os.environ, **home}
        pipeline = self.project / "include" / "pipelines" / "copied"
        pipeline.mkdir(parents=True)
        (self.project / "include" / "project.yaml").write_text(PROJECT)
        (pipeline / "pipeline.yaml").write_text(PIPELINE)
        (pipeline / "transform.sql").write_text("SELECT upper(line) AS line FROM notes")
        self._landing = self.project / "storage" / "landing"
        self._landing.mkdir(parents=True)

    def land(self, name: str, *lines: str) -> None:
        (self._landing / name).write_text("".join(f"{line}\n" for line in lines))

    def drawdown(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*DRAWDOWN, *arguments]
        return subprocess.run(
            command, cwd=self.project, env=self._environment, capture_output=True, text=True, timeout=300
        )

    def page(self) -> str:
        """Return docs/pipeline-yaml.md as it is with the two kinds."""
        command = [sys.executable, "-c", "from dev.reference_pages import page; print(page('pipeline'))"]
        path = os.pathsep.join((self._environment["PYTHONPATH"], str(Path(__file__).parents[2])))
        made = subprocess.run(
            command, env={**self._environment, "PYTHONPATH": path}, capture_output=True, text=True, check=True
        )
        return made.stdout

    def journal(self) -> list[str]:
        files = sorted((self.project / "storage" / "journal").glob("*/*.json"))
        return [json.loads(line)["line"] for file in files for line in file.read_text().splitlines()]


@pytest.fixture
def copied(tmp_path: Path) -> Copied:
    return Copied(tmp_path)


def test_their_keys_and_options_are_checked_and_each_run_takes_what_is_new(copied: Copied) -> None:
    spec = copied.project / "include/pipelines/copied/pipeline.yaml"
    spec.write_text(PIPELINE.replace("path: landing", "path: landing, broker: default"))
    refused = copied.drawdown("validate")
    assert refused.returncode == 2
    assert "spec.no-effect" in refused.stderr
    assert "a notes source has no broker (its keys: path)" in " ".join(refused.stderr.split())
    spec.write_text(PIPELINE.replace("path: landing", "path: landing, static: true"))
    assert "a notes source cannot be static" in copied.drawdown("validate").stderr
    page = copied.page()
    assert "### Notes as a source" in page
    assert "### Journals as a sink" in page

    spec.write_text(PIPELINE)
    copied.land("a.note", "one", "two")
    for expected in (["ONE", "TWO"], ["ONE", "TWO", "THREE"]):
        done = copied.drawdown("run", "copied")
        assert done.returncode == 0, done.stderr
        assert copied.journal() == expected
        copied.land("b.note", "three")
    idle = copied.drawdown("run", "copied", "--json")
    assert idle.returncode == 0, idle.stderr
    assert "nothing" in (idle.stdout + idle.stderr)
