"""`drawdown explain`: what an id means, in 80 columns and as JSON."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from drawdown.cli.shown.error_entry import entry_index, entry_page
from drawdown.error_registry import error_entries
from tests.support.command_line import answer


def _explain(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = "from drawdown.cli.main import main; main()"
    command = [sys.executable, "-c", program, "explain", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_an_id_is_explained_outside_of_any_project(tmp_path: Path) -> None:
    done = _explain(tmp_path, "lease.held")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:4] == [
        "lease.held",
        "  kind        BusyError",
        "  exit code   4",
        "  retry       can help",
    ]
    assert "Another run, replay or command is working on this pipeline." in " ".join(done.stdout.split())
    assert "`drawdown runs NAME`" in done.stdout


def test_as_json(tmp_path: Path) -> None:
    said = answer(_explain(tmp_path, "metastore.unreachable", "--json").stdout)
    assert (said["id"], said["exit_codes"], said["transient"]) == ("metastore.unreachable", [5, 8], True)
    assert [each["id"] for each in answer(_explain(tmp_path, "lease", "--json").stdout)] == [
        "lease.held",
        "lease.lost",
    ]


def test_an_unknown_id_is_refused_with_the_nearest(tmp_path: Path) -> None:
    done = _explain(tmp_path, "lease.hold")
    assert (done.returncode, done.stdout) == (2, "")
    assert "explain.unknown" in done.stderr
    assert "did you mean 'lease.held'?" in done.stderr


def test_without_an_id_all_are_listed(tmp_path: Path) -> None:
    done = _explain(tmp_path)
    assert done.returncode == 0
    assert done.stdout == entry_index(error_entries().values())
    for entry in error_entries().values():
        assert entry.id.partition(".")[2] in done.stdout


@pytest.mark.parametrize(
    ("id", "kind", "retry"),
    [
        ("metastore.unreachable", "MachineError; SourceError", "can help when it is a SourceError"),
        ("join.kind", "TransformError; refused by a plan: nothing is started", "does not help"),
        ("slice.waits", "notice of the run record: the run continues", None),
    ],
)
def test_an_entry_says_what_it_is_and_whether_a_retry_can_help(id: str, kind: str, retry: str | None) -> None:
    lines = dict(line.strip().split("  ", 1) for line in entry_page(error_entries()[id]).splitlines()[1:4])
    assert lines["kind"].strip() == kind
    assert lines.get("retry", "").strip() == (retry or "")


def test_everything_fits_80_columns() -> None:
    entries = error_entries().values()
    texts = [entry_index(entries), *map(entry_page, entries)]
    assert [line for text in texts for line in text.splitlines() if len(line) > 80] == []
