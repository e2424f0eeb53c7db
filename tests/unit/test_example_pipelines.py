"""The example pipelines load, hang together, and show a newcomer every file a folder can have."""

import csv
from pathlib import Path

import pytest
import yaml

from dev.demo.line import GROUP, PIPELINES
from drawdown.quality.expectations import validate_expectations
from drawdown.spec import Pipeline, load_pipeline, load_project
from drawdown.spec.project_wide.order import in_dependency_order

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=PIPELINES)
def example(request: pytest.FixtureRequest) -> Pipeline:
    return load_pipeline(load_project(ROOT), request.param)


def cases(pipeline: Pipeline) -> list[Path]:
    return sorted(pipeline.folder.glob("tests/*/case.yaml"))


def test_the_examples_are_one_group_drained_upstream_first() -> None:
    project = load_project(ROOT)
    examples = [load_pipeline(project, name) for name in reversed(PIPELINES)]
    assert {each.group for each in examples} == {GROUP}
    order = [each.name for each in in_dependency_order(examples)]
    assert order.index("flights") < min(order.index("departures_hourly"), order.index("flights_enriched"))


def test_its_expectations_exist_in_great_expectations(example: Pipeline) -> None:
    assert example.quality.expectations
    validate_expectations(example)


def test_it_is_short_enough_to_be_read_at_once(example: Pipeline) -> None:
    assert len((example.folder / "pipeline.yaml").read_text().splitlines()) < 40


def test_its_test_cases_name_files_that_are_there(example: Pipeline) -> None:
    assert cases(example)
    for case in cases(example):
        said = yaml.safe_load(case.read_text())
        files = [
            file
            for wave in [said.get("static", {}), *said["waves"]]
            for each in wave.values()
            for file in each
        ]
        expected = [f"wave{number}.expected.csv" for number in range(1, len(said["waves"]) + 1)]
        assert [name for name in [*files, *expected] if not (case.parent / name).is_file()] == []


def test_its_test_cases_expect_columns_of_the_sink(example: Pipeline) -> None:
    schema = example.sink_schema_ddl
    for case in cases(example):
        for file in case.parent.glob("*.expected.csv"):
            with file.open(newline="") as lines:
                columns = next(csv.reader(lines))
            known = [line.split()[0] for line in schema.strip().splitlines()] if schema else columns
            assert set(columns) <= set(known)
