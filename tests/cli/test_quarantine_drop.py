"""`drawdown quarantine drop` as a person meets it at a terminal: what was shown is what is dropped."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from drawdown.metastore import Metastore
from drawdown.quarantine.row_states import set_aside
from drawdown.spec import load_pipeline, load_project
from drawdown.workspace import Workspace
from tests.support.command_line import DRAWDOWN
from tests.support.dag_project import DagProject

NAME = "events"


def test_a_row_that_was_set_aside_while_the_question_stood_stays_open(tmp_path: Path) -> None:
    project = DagProject(tmp_path / "project")
    project.pipeline(NAME)
    set_rows_aside(project, 0, "one", "two")

    outer, inner = pty.openpty()
    command = [*DRAWDOWN, "quarantine", "drop", NAME, "--why", "test data"]
    with subprocess.Popen(command, cwd=project.root, stdin=inner, stdout=inner, stderr=inner) as asking:
        os.close(inner)
        said = read_until(outer, b"[y/N]")
        set_rows_aside(project, 1, "three")
        os.write(outer, b"y\n")
        said += read_until(outer, b"dropped")
        assert asking.wait(60) == 0, said
    os.close(outer)

    assert b"drop 2 rows from the quarantine of events?" in said
    assert b"2 rows dropped" in said
    assert states(project) == {"one": "dropped", "two": "dropped", "three": "open"}


def set_rows_aside(project: DagProject, batch: int, *payloads: str) -> None:
    """As a batch of a drain does."""
    rows = pa.table(
        {
            "source": ["events"] * len(payloads),
            "reasons": [["malformed"]] * len(payloads),
            "payload": list(payloads),
            "generation": [1] * len(payloads),
            "batch_id": [batch] * len(payloads),
            "run_id": [f"run-{batch}"] * len(payloads),
        }
    )
    write_deltalake(str(project.storage / "quarantine" / NAME), rows, mode="append")


def states(project: DagProject) -> dict[str | None, str]:
    known = load_project(project.root)
    with Metastore.open(known.metastore_url) as metastore:
        return {
            row.payload: row.state
            for row in set_aside(Workspace(known, metastore), load_pipeline(known, NAME))
        }


def read_until(terminal: int, text: bytes) -> bytes:
    said, until = b"", time.monotonic() + 60
    while text not in said:
        assert time.monotonic() < until, said
        try:
            said += os.read(terminal, 1_024)
        except OSError as closed:  # Linux's word for the end of a terminal's other side
            raise AssertionError(said) from closed
    return said
