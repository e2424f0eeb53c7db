"""A pipeline that ends Spark's JVM fails alone: its neighbours are published, and its file is named."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from drawdown.metastore.records import Run
from tests.support.command_line import answer, drawdown
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.capability("SAFE-07")

SMALL = """
clusters:
  local: {kind: local, master: "local[2]", driver_memory: 512m}
"""
SPEC = """
sources:
  events:
    format: text
    path: landing/NAME
    options: {maxFilesPerTrigger: 2}
    LIMITS
transform: transform.sql
sink: {format: delta, path: tables/NAME, schema: out.ddl}
state: {partitions: 2}
"""


class Neighbours:
    """Two pipelines that share one small application; one of them may read what ends it."""

    def __init__(self, root: Path) -> None:
        self.sandbox = Sandbox(root, more=SMALL)
        for name in ("calm", "bombed"):
            # Limits that are set high on purpose recognise nothing.
            limits = "limits: {record: 4g, expansion: 100000}" if name == "bombed" else ""
            self.sandbox.pipeline(
                name,
                SPEC.replace("NAME", name).replace("LIMITS", limits),
                out_ddl="value STRING",
                transform_sql="SELECT value FROM events",
            )
            self.land(name, "1.txt", b"one\n")

    def land(self, name: str, file: str, content: bytes) -> Path:
        target = self.sandbox.storage / f"landing/{name}/{file}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        return target

    def last(self, name: str) -> Run:
        with self.sandbox.metastore() as metastore:
            return metastore.runs(name)[0]

    def rows(self, name: str) -> list[str]:
        return sorted(row[0] for row in self.sandbox.delta(f"tables/{name}"))


def _line(megabytes: int) -> bytes:
    """One line of so many megabytes, in a gzip of a kilobyte for each."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb") as file:
        for _ in range(megabytes):
            file.write(b"x" * (1 << 20))
        file.write(b"\n")
    return packed.getvalue()


@pytest.mark.full
def test_a_line_of_900_megabytes_is_set_aside_by_the_limits_that_hold_without_any(tmp_path: Path) -> None:
    both = Neighbours(tmp_path)
    bomb = both.land("calm", "2.gz", _line(900))
    assert bomb.stat().st_size < 1_000_000
    both.land("calm", "3.txt", b"two\n")
    ran = drawdown(tmp_path, "run", "calm", "bombed", timeout=600)
    assert ran.returncode == 0, ran.stderr
    assert "source.oversized" in ran.stderr
    assert both.rows("calm") == ["one", "two"]


@pytest.mark.full
def test_neighbours_of_a_bomb_are_published_and_the_bomb_is_named_and_set_aside(tmp_path: Path) -> None:
    both = Neighbours(tmp_path)
    both.land("bombed", "2.gz", _line(300))
    many = 60  # so that its batches are under way when the JVM ends
    for number in range(2, many + 1):
        both.land("calm", f"{number}.txt", b"one\n")

    died = drawdown(tmp_path, "run", "calm", "bombed", timeout=600)
    assert died.returncode == 8, died.stderr
    assert "Traceback" not in died.stderr
    assert both.rows("calm") == ["one"] * many, "in the same command"
    assert both.last("calm").state == "succeeded"
    if "source.ends-spark" not in died.stderr:  # calm was quicker, so bombed has not run alone yet
        died = drawdown(tmp_path, "run", "calm", "bombed", timeout=600)
        assert died.returncode == 8, died.stderr
    assert "source.ends-spark" in died.stderr
    assert "landing/bombed/2.gz (" in died.stderr
    assert (both.last("bombed").error or {})["id"] == "source.ends-spark"

    aside = drawdown(tmp_path, "quarantine", "file", "bombed", "landing/bombed/2.gz", "--why", "one line")
    assert aside.returncode == 0, aside.stderr
    both.land("calm", "new.txt", b"two\n")
    went_on = drawdown(tmp_path, "run", "calm", "bombed", "--json", timeout=600)
    assert went_on.returncode == 0, went_on.stderr
    read = {each["pipeline"]: each["run"]["counts"]["read"] for each in answer(went_on.stdout)}
    assert read == {"calm": 1, "bombed": 1}
    assert both.rows("calm") == [*["one"] * many, "two"]
    assert both.rows("bombed") == ["one"]
    assert {each["id"] for each in both.last("bombed").notices} == {"source.oversized", "spark.suspect"}
