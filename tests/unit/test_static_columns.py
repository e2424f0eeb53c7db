"""Schemas and the columns that pipeline.yaml and quality.yaml name, looked at without Spark."""

from __future__ import annotations

from pathlib import Path

from drawdown.errors import SpecError
from drawdown.static_checks.check import static_error
from tests.support.spec_folders import SpecFolders

SOURCE = "id INT, name STRING, at TIMESTAMP, day DATE"
PIPELINE = f"""\
sources:
  events:
    format: json
    path: landing/events
    schema: {SOURCE}
    watermark:
      column: at
      delay: 1 hour
  towns: {{format: csv, path: reference/towns, schema: "town STRING", static: true}}
sink:
  format: delta
  path: tables/out
  schema: hour TIMESTAMP, n BIGINT
"""
QUALITY = """\
rules:
  - name: has_name
    check: name IS NOT NULL
    on_fail: warn
expectations:
  - type: expect_column_values_to_not_be_null
    kwargs:
      column: hour
      row_condition: n > 1
      condition_parser: spark
  - type: expect_compound_columns_to_be_unique
    kwargs:
      column_list: [hour, n]
queries:
  - name: none
    unexpected: SELECT hour FROM slice WHERE n < 0
history:
  - measure: mean
    column: n
    ratio: [0.5, 2]
"""
SQL = "SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM events GROUP BY date_trunc('hour', at)"


def found(root: Path, pipeline: str = PIPELINE, quality: str = QUALITY) -> SpecError | None:
    folders = SpecFolders(root)
    folder = folders.add(pipeline=pipeline, quality=quality)
    (folder / "transform.sql").write_text(SQL)
    return static_error(folders.project, folders.load())


def test_a_right_folder_is_left_alone(tmp_path: Path) -> None:
    assert found(tmp_path) is None


def test_a_schema_file_is_named_with_its_line(tmp_path: Path) -> None:
    folders = SpecFolders(tmp_path)
    folder = folders.add(pipeline=PIPELINE.replace(SOURCE, "schemas/departures.ddl"))
    (folder / "schemas" / "departures.ddl").write_text("id INT,\n-- the time\nat TIMESTMP\n")
    error = static_error(folders.project, folders.load())
    assert error is not None
    assert error.where == "include/pipelines/hourly/schemas/departures.ddl:3"


def test_all_mistakes_are_said_at_once(tmp_path: Path) -> None:
    error = found(
        tmp_path, PIPELINE.replace("column: at", "column: att"), QUALITY.replace("check: name", "check: nam")
    )
    assert error is not None
    assert "also include/pipelines/hourly/quality.yaml:3: rule has_name names the column 'nam'" in error.what


def test_a_landing_folder_that_is_a_link_out_of_the_storage_root(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "storage" / "landing").mkdir(parents=True)
    (tmp_path / "storage" / "landing" / "events").symlink_to(tmp_path / "elsewhere")
    error = found(tmp_path)
    assert error is not None
    assert (error.id, error.where) == ("source.outside-root", "include/pipelines/hourly/pipeline.yaml:4")
    assert str(tmp_path / "elsewhere") in error.what


def test_a_static_source_may_have_columns_of_its_folders(tmp_path: Path) -> None:
    query = QUALITY.replace("FROM slice", "FROM slice JOIN towns ON region = 'x'")
    (tmp_path / "storage" / "reference" / "towns" / "region=x").mkdir(parents=True)
    assert found(tmp_path, quality=query) is None


def test_the_columns_of_a_static_source_without_such_folders_are_known(tmp_path: Path) -> None:
    query = QUALITY.replace("FROM slice", "FROM slice JOIN towns ON region = 'x'")
    (tmp_path / "storage" / "reference" / "towns").mkdir(parents=True)
    error = found(tmp_path, quality=query)
    assert error is not None
    assert "region" in error.what
