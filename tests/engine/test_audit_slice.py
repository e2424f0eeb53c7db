"""The audit judges exactly the slice it is given, in a real Spark session."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from drawdown.quality.audit import GxAuditor
from drawdown.quality.outcome import AuditOutcome
from drawdown.spec import Expectation, Pipeline, Quality
from tests.support.quality import pipeline_with
from tests.support.spark import cached

FLIGHTS = """
  SELECT * FROM VALUES
    (1, 'EWR', 10.0D, 100.50BD, TIMESTAMP '2013-01-01 05:00:00', DATE '2013-01-01'),
    (2, 'EWR', 20.0D, 200.50BD, TIMESTAMP '2013-01-01 06:00:00', DATE '2013-01-01'),
    (3, 'XXX', double('NaN'), 300.50BD, TIMESTAMP '2013-01-01 07:00:00', DATE '2013-01-02'),
    (4, 'XXX', 40.0D, 400.50BD, TIMESTAMP '2013-01-01 08:00:00', DATE '2013-01-02'),
    (5, 'YYY', NULL, 500.50BD, TIMESTAMP '2013-01-01 09:00:00', DATE '2013-01-03'),
    (6, 'YYY', 60.0D, 600.50BD, TIMESTAMP '2013-01-01 23:00:00', DATE '2013-01-03')
  AS flights(flight, origin, delay, fare, departed_at, day)
"""
QUERY = "SELECT * FROM {batch} WHERE delay > 15"
MAXIMUM = "{type: expect_column_max_to_be_between"
KNOWN_ORIGIN = "{type: expect_column_values_to_be_in_set, kwargs: {column: origin, value_set: [EWR, JFK]}"
PIPELINE = pipeline_with(f"expectations: [{KNOWN_ORIGIN}}}]")


@pytest.fixture(scope="module")
def slice_path(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("slice") / "staged")
    spark.sql(FLIGHTS).coalesce(1).write.parquet(path)
    return path


@pytest.fixture
def flights(spark: SparkSession, slice_path: str) -> DataFrame:
    """Staged rows as the drain reads them: parquet files, in the query's own session."""
    return spark.newSession().read.parquet(slice_path)


def audit(slice: DataFrame, *expectations: str, rows: int = 6) -> AuditOutcome:
    listed = "\n".join(f"  - {expectation}" for expectation in expectations)
    return GxAuditor()(slice, pipeline_with(f"expectations:\n{listed}"), rows)


def test_expectations_that_hold_pass(flights: DataFrame) -> None:
    said = audit(
        flights,
        "{type: expect_column_values_to_not_be_null, kwargs: {column: origin}}",
        "{type: expect_column_max_to_be_between, kwargs: {column: flight, max_value: 6}}",
        "{type: expect_column_values_to_not_be_null, kwargs: {column: delay, mostly: 0.8}}",
    )
    assert said.outcome == "pass"
    assert said.text == "pass: 3 of 3 expectations passed (6 rows checked)"
    assert [entry["success"] for entry in said.results] == [True, True, True]


def test_a_failure_comes_with_its_observed_share_and_at_most_three_samples(flights: DataFrame) -> None:
    said = audit(flights, KNOWN_ORIGIN + ", name: known_origin}")
    assert said.outcome == "fail"
    (entry,) = said.results
    assert (entry["name"], entry["severity"], entry["success"]) == ("known_origin", "fail", False)
    assert entry["kwargs"] == {"column": "origin", "value_set": ["EWR", "JFK"]}
    assert entry["unexpected_count"] == 4
    assert entry["unexpected_percent"] == pytest.approx(100 * 4 / 6)
    assert entry["samples"] == [{"origin": origin} for origin in ("XXX", "XXX", "YYY")]
    assert "known_origin: expect_column_values_to_be_in_set on origin: failed" in said.text
    assert "unexpected: 4 (66.67 %" in said.text
    assert said.text.count("sample:") == 3


def test_results_are_json_for_every_type_of_column(flights: DataFrame) -> None:
    said = audit(
        flights,
        KNOWN_ORIGIN + "}",
        f"{MAXIMUM}, kwargs: {{column: departed_at, max_value: 2013-01-01 12:00:00}}}}",
        "{type: expect_column_max_to_be_between, kwargs: {column: fare, max_value: 600}}",
        "{type: expect_column_min_to_be_between, kwargs: {column: delay, min_value: 20}}",
        "{type: expect_column_max_to_be_between, kwargs: {column: day, max_value: 2013-01-02}}",
    )
    assert said.outcome == "fail"
    kept = json.loads(json.dumps(said.results, allow_nan=False))
    assert [entry["observed"] for entry in kept] == [None, "2013-01-01T23:00:00", 600.5, 10.0, "2013-01-03"]
    assert kept[1]["kwargs"]["max_value"] == "2013-01-01 12:00:00"


def test_the_severity_decides_between_warn_and_fail(flights: DataFrame) -> None:
    late = "{type: expect_column_max_to_be_between, kwargs: {column: flight, max_value: 1}, severity: warn}"
    assert audit(flights, late).outcome == "warn"
    both = audit(flights, late, KNOWN_ORIGIN + "}")
    assert both.outcome == "fail"
    assert "failed, a warning" in both.text


def test_each_result_belongs_to_its_own_expectation(flights: DataFrame) -> None:
    """Great Expectations returns results in an order of its own."""
    said = audit(
        flights,
        "{type: expect_column_max_to_be_between, kwargs: {column: flight, max_value: 5}, name: most}",
        "{type: expect_column_values_to_be_unique, kwargs: {column: flight}, name: unique}",
        "{type: expect_column_max_to_be_between, kwargs: {column: flight, max_value: 6}, name: all}",
        "{type: expect_column_max_to_be_between, kwargs: {column: flight, max_value: 6}, name: again}",
        KNOWN_ORIGIN + ", name: origin}",
        "{type: expect_table_row_count_to_equal, kwargs: {value: 6}, name: rows}",
    )
    assert {entry["name"]: entry["success"] for entry in said.results} == {
        "most": False,
        "unique": True,
        "all": True,
        "again": True,
        "origin": False,
        "rows": True,
    }
    assert [e["name"] for e in said.results] == ["most", "unique", "all", "again", "origin", "rows"]
    assert said.results[0]["observed"] == 6


@pytest.mark.parametrize("severity", ["fail", "warn"])
def test_a_missing_column_is_an_error_whatever_the_severity(flights: DataFrame, severity: str) -> None:
    said = audit(
        flights,
        f"{MAXIMUM}, kwargs: {{column: arival, max_value: 1}}, severity: {severity}}}",
        KNOWN_ORIGIN + "}",
    )
    assert said.outcome == "error"
    assert "arival" in said.results[0]["exception"]
    assert said.results[1]["unexpected_count"] == 4, "the others are still reported"
    assert "on arival: error, not judged" in said.text


def test_an_empty_slice_is_empty_and_not_a_failed_maximum(flights: DataFrame) -> None:
    none = flights.where("false")
    most = "{type: expect_column_max_to_be_between, kwargs: {column: flight, max_value: 5}}"
    assert audit(none, most, rows=0).outcome == "empty"


def test_no_expectations_pass_and_say_so(flights: DataFrame) -> None:
    said = GxAuditor()(flights, pipeline_with("rules: []"), 6)
    assert said == AuditOutcome("pass", [], "pass: no expectations are declared; 6 rows not examined")


def test_a_slice_that_cannot_be_read_is_an_error_with_its_cause(spark: SparkSession, tmp_path: Path) -> None:
    staged = tmp_path / "staged"
    spark.sql(FLIGHTS).write.parquet(str(staged))
    gone = spark.read.parquet(str(staged))
    for file in staged.glob("*.parquet"):
        file.unlink()
    said = audit(gone, KNOWN_ORIGIN + "}")
    assert said.outcome == "error"
    assert "FILE_NOT_EXIST" in said.text or "does not exist" in said.text


def test_a_crash_of_great_expectations_is_an_error_with_an_id(flights: DataFrame) -> None:
    said = GxAuditor()("not a DataFrame", PIPELINE, 6)  # type: ignore[arg-type]
    assert said.outcome == "error"
    assert said.text.startswith("error: audit.crashed: AttributeError: ")
    assert "\n" not in said.text


def test_a_wrong_expectation_is_an_error_with_the_id_of_its_refusal(flights: DataFrame) -> None:
    said = audit(flights, "{type: expect_column_maximum, kwargs: {column: flight}}")
    assert said.outcome == "error"
    assert said.text.startswith("error: quality.unknown-expectation: ")


def test_an_sql_expectation_is_refused_by_the_audit_too(flights: DataFrame) -> None:
    """The spec's pattern for types leaves it out."""
    sql = Expectation.model_construct(
        type="unexpected_rows_expectation", kwargs={"unexpected_rows_query": QUERY}
    )
    quality = Quality.model_construct(expectations=[sql])
    pipeline = SimpleNamespace(
        name="flights",
        folder=Path(),
        is_next=False,
        quality=quality,
        sink=PIPELINE.sink,
        sample_gate=PIPELINE.sample_gate,
    )
    said = GxAuditor()(flights, cast(Pipeline, pipeline), 6)
    assert said.outcome == "error"
    assert "quality.unknown-expectation" in said.text


def test_the_second_look_costs_jobs_only_when_something_failed(
    spark: SparkSession, flights: DataFrame
) -> None:
    columns = ["flight", "origin", "delay", "fare", "departed_at", "day"]
    hold = [
        f"{{type: expect_column_values_to_not_be_null, kwargs: {{column: {column}, mostly: 0.1}}}}"
        for column in columns
    ]
    few = jobs_of(spark, flights, *hold[:2])
    many = jobs_of(spark, flights, *hold)
    failing = jobs_of(spark, flights, *hold, KNOWN_ORIGIN + "}")
    assert few == many, "expectations of one kind share their jobs"
    assert failing > many


def jobs_of(spark: SparkSession, slice: DataFrame, *expectations: str) -> int:
    group = f"audit of {len(expectations)}"
    spark.sparkContext.setJobGroup(group, group)
    try:
        audit(slice, *expectations)
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
    finally:
        spark.sparkContext._jsc.clearJobGroup()


def test_the_slice_is_not_left_in_the_cache(spark: SparkSession, flights: DataFrame) -> None:
    before = cached(spark)
    audit(flights, KNOWN_ORIGIN + "}")
    assert cached(spark) == before
    assert not flights.storageLevel.useMemory


def test_an_audit_prints_and_logs_nothing(
    flights: DataFrame, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        audit(
            flights, KNOWN_ORIGIN + "}", "{type: expect_column_max_to_be_between, kwargs: {column: nowhere}}"
        )
    out, err = capfd.readouterr()
    assert (out, "Calculating Metrics" in err) == ("", False)
    assert [record for record in caplog.records if record.name.startswith("great_expectations")] == []


def test_an_audit_leaves_no_file_behind(
    flights: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    said = GxAuditor()(flights, PIPELINE, 6)
    assert (said.outcome, list(tmp_path.iterdir())) == ("fail", [])


def test_an_audit_asks_no_other_machine(flights: DataFrame) -> None:
    asked: list[str] = []
    listening = True

    def hear(event: str, args: tuple[object, ...]) -> None:
        if listening and event in ("socket.connect", "socket.getaddrinfo"):
            host = args[1][0] if event == "socket.connect" else args[0]  # type: ignore[index]
            asked.append(str(host))

    sys.addaudithook(hear)
    try:
        audit(flights, KNOWN_ORIGIN + "}")
    finally:
        listening = False
    assert set(asked) <= {"127.0.0.1", "localhost", "::1"}


@pytest.mark.full
def test_times_are_compared_in_utc_wherever_the_driver_runs(slice_path: str) -> None:
    """PySpark would hand over New York's wall clock: 18:00 for 23:00 UTC."""
    code = f"""
from tests.support.quality import pipeline_with
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).config(
    "spark.sql.session.timeZone", "UTC").getOrCreate()
from drawdown.quality.audit import GxAuditor
said = GxAuditor()(spark.read.parquet({slice_path!r}), pipeline_with('''
expectations:
  - {{type: expect_column_max_to_be_between, kwargs: {{column: departed_at, max_value: 2013-01-01 20:00:00}}}}
'''), 6)
print(said.outcome, said.results[0]["observed"])
spark.stop()
"""
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TZ": "America/New_York"},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert ran.stdout.strip() == "fail 2013-01-01T23:00:00", ran.stderr
