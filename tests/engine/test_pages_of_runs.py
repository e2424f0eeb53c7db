"""The pages over what real runs record: Spark's offsets, progress and state, an audit, the query."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.fixtures.pages import Ask
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  events:
    format: json
    path: landing/events
    schema: "at TIMESTAMP, id BIGINT"
    watermark: {column: at, delay: 10 minutes}
    options: {maxFilesPerTrigger: 1}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl, publish: audited}
state: {partitions: 1}
"""
QUALITY = """
rules:
  - {name: positive, source: events, check: "id > 0", on_fail: quarantine}
expectations:
  - {type: expect_table_row_count_to_be_between, name: at most one hour, kwargs: {min_value: 0, max_value: 1}}
"""
PRICED = """
clusters:
  local: {master: "local[2]", driver_memory: 1g, price: {currency: EUR, core_hour: 400, gb_hour: 50}}
"""
TRANSFORM = "SELECT window.start AS hour, count(*) AS rows FROM events GROUP BY window(at, '1 hour')"


def row(hour: int, number: int) -> dict[str, object]:
    return {"at": f"2024-01-01T{hour:02d}:05:00Z", "id": number}


@pytest.mark.capability("SEE-02")
@pytest.mark.capability("SEE-03")
def test_the_pages_say_what_real_runs_recorded(
    tmp_path: Path, spark: SparkSession, as_reader_of: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = Sandbox(tmp_path / "project", spark, more=PRICED)
    monkeypatch.chdir(sandbox.root)
    sandbox.pipeline(
        "hourly", SPEC, transform_sql=TRANSFORM, quality_yaml=QUALITY, out_ddl="hour TIMESTAMP, rows BIGINT"
    )
    sandbox.land_json("landing/events/1.json", [row(10, 1), row(10, -1)], mtime=1)
    sandbox.land_json("landing/events/2.json", [row(12, 2)], mtime=2)
    sandbox.run("hourly")
    [row_of_fleet] = as_reader_of("hourly").get("/fleet?format=json").json()["rows"]
    assert float(row_of_fleet["cost"]["EUR"]) > 0, "what a run cost is known when its application has ended"
    sandbox.land("landing/events/3.json", '{"at": "2024-01-01T15:00:00Z", "id": 3}\nno json\n', mtime=3)
    sandbox.drain("hourly")
    client = as_reader_of("hourly")

    page = client.get("/dags/hourly?format=json").json()
    first, second = page["points"]
    assert (first["counts"]["read"], first["counts"]["quarantined"], first["outcome"]) == (3, 1, "pass")
    assert (second["counts"]["read"], second["counts"]["malformed"]) == (2, 1)
    assert second["newest_event"] == "2024-01-01T15:00:00+00:00"
    assert second["watermark"] == "2024-01-01T14:50:00+00:00"
    assert set(first["phases"]) >= {"open", "query", "audit", "publish"}
    assert second["state_rows"] is None, "RocksDB does not count them by default"
    assert second["state_bytes"] > 0
    [operator] = page["query"]["operators"]
    assert operator["name"] == "aggregate"
    assert any("window" in key for key in operator["facts"]["keys"])
    assert [(each["name"], each["watermark"]) for each in page["query"]["sources"]] == [
        ("events", "at 10 minutes")
    ]
    assert page["query"]["columns"] == ["hour timestamp", "rows bigint"]
    [expectation] = page["expectations"]
    assert [outcome for outcome, _ in expectation["bars"]] == ["pass", "pass"]
    for path in ("/dags/hourly", "/fleet"):
        assert client.get(path).status_code == 200

    with sandbox.metastore() as metastore:
        [_, run] = metastore.runs("hourly")
        assert metastore.batches_of_run(run, 2) == metastore.batches_of_run(run, 50)[-2:]
        metastore.update_run(run.run_id, origin={"dag_id": "hourly", "dag_run_id": "r"})
    [shown] = client.get("/runs/hourly/r?format=json").json()["details"]
    assert shown["balance"] == {
        "read": 3,
        "parts": {"malformed": 0, "future": 0, "quarantined": 1, "fed": 2},
        "adds_up": True,
    }
    reads = [(batch["counts"]["read"], batch["reads"][0]["before"], batch["reads"][0]["after"])
             for batch in shown["batches"]]  # fmt: skip
    assert reads[:2] == [(2, "the beginning", "log entry 0"), (1, "log entry 0", "log entry 1")]
    assert all(batch["started_at"] and batch["seconds"] > 0 for batch in shown["batches"])
    assert len(shown["timeline"]) == len(shown["batches"])
    docs = shown["verdicts"][0]["data_docs"]
    assert "at most one hour" in client.get(f"/data-docs/hourly/hourly/{docs}").text
