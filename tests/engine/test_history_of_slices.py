"""Slices are compared with the slices published before them, over real runs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from drawdown.errors import AuditFailed, SpecError
from drawdown.held.decide import Decision, decide
from drawdown.metastore.records import Verdict
from drawdown.quality.data_docs import docs_folder
from drawdown.quality.measures import measure
from drawdown.spec import load_pipeline
from drawdown.workspace import Workspace
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: events.ddl}
transform: transform.sql
sink: {format: delta, path: tables/events, schema: events.ddl, publish: audited}
state: {partitions: 2}
"""
QUALITY = """
history:
  - {measure: volume, ratio: [0.5, 2], runs: 2}
  - {measure: null_rate, column: v, difference: 0.3, runs: 2, severity: warn}
  - {measure: mean, column: v, ratio: [0.5, 2], runs: 2, severity: warn}
  - {measure: distinct_count, column: k, difference: 1, runs: 2, severity: warn}
  - {measure: freshness, column: at, max_age: 36500 days}
"""
DDL = "k STRING, v DOUBLE, at TIMESTAMP"


class Line:
    """The pipeline `events`; each run drains one landed file."""

    def __init__(self, sandbox: Sandbox, quality: str = QUALITY) -> None:
        self.sandbox = sandbox
        self.landed = 0
        text = {"events_ddl": DDL, "transform_sql": "SELECT * FROM events", "quality_yaml": quality}
        sandbox.pipeline("events", SPEC, **text)

    def run(self, rows: int, null: int = 0) -> Verdict:
        self.landed += 1
        made = [
            {"k": "ab"[i % 2], "at": f"2024-01-0{self.landed}T00:00:{i:02}Z"}
            | ({} if i < null else {"v": float(i)})
            for i in range(rows)
        ]
        self.sandbox.land_json(f"landing/events/{self.landed}.json", made, mtime=self.landed)
        self.sandbox.run("events")
        return self.verdict()

    def verdict(self) -> Verdict:
        with self.sandbox.metastore() as metastore:
            return metastore.verdicts("events")[0]

    def history(self) -> list[dict[str, Any]]:
        with self.sandbox.metastore() as metastore:
            return metastore.slice_history("events", {"volume": 10})


def test_a_slice_is_held_when_its_volume_leaves_the_published_history(sandbox: Sandbox) -> None:
    line = Line(sandbox)
    first = line.run(4)
    assert first.measures == {
        "volume": 4,
        "null_rate(v)": 0.0,
        "mean(v)": 1.5,
        "distinct_count(k)": 2,
        "freshness(at)": 1_704_067_203_000_000,
    }
    assert first.outcome == "pass"
    assert "- volume: not judged yet: 0 of 2 published slices needed" in first.text
    assert line.run(6).outcome == "pass"
    # The median of 4 and 6 rows is 5.
    with pytest.raises(AuditFailed, match="volume: failed"):
        line.run(11)
    held = line.verdict()
    assert [(e["type"], e["success"]) for e in held.results if e["severity"] == "fail"] == [
        ("volume", False),
        ("freshness", True),
    ]
    assert (held.results[0]["observed"], held.results[0]["kwargs"]["max_value"]) == (11.0, 10.0)
    assert [measures["volume"] for measures in line.history()] == [6, 4], "what is held is no history"
    decided(line, "discard")
    assert [measures["volume"] for measures in line.history()] == [6, 4]
    warned = line.run(10, null=5)
    assert warned.outcome == "warn"
    assert {e["type"] for e in warned.results if not e["success"]} == {"null_rate", "mean"}
    assert [measures["volume"] for measures in line.history()] == [10, 6, 4]
    index = (sandbox.storage / docs_folder("events") / "index.html").read_text()
    assert re.findall(r"_([a-z]+)\.html", index) == ["warn", "fail", "pass", "pass"]


def test_a_released_slice_is_history(sandbox: Sandbox) -> None:
    line = Line(sandbox, "history:\n  - {measure: volume, ratio: [0.5, 2], runs: 2}\n")
    line.run(2)
    line.run(2)
    with pytest.raises(AuditFailed):
        line.run(9)
    decided(line, "release")
    assert [measures["volume"] for measures in line.history()] == [9, 2, 2]


def test_a_column_that_is_not_there_is_an_error_by_name(sandbox: Sandbox) -> None:
    line = Line(sandbox, "history:\n  - {measure: mean, column: vv, ratio: [0.5, 2]}\n")
    with pytest.raises(SpecError, match=r"spec\.unknown-column.*did you mean 'v'") as caught:
        line.run(2)
    assert caught.value.where.endswith("quality.yaml:2")
    assert sandbox.spark is not None
    slice = sandbox.spark.createDataFrame([], "k STRING")
    with pytest.raises(SpecError, match=r"history\.unknown-column"):
        measure(slice, load_pipeline(sandbox.project, "events"), 0)
    other = Line(sandbox, "history:\n  - {measure: mean, column: k, ratio: [0.5, 2]}\n")
    with pytest.raises(AuditFailed, match=r"history\.wrong-type.*mean does not work on string"):
        other.run(2)


def decided(line: Line, choice: Any) -> None:
    project = line.sandbox.project
    with line.sandbox.metastore() as metastore:
        decide(
            Workspace(project, metastore),
            load_pipeline(project, "events"),
            Decision(choice, f"{choice}-1", "test", by="ada", why="looked at"),
        )
