"""The facets of lineage events: one function for each, from facts to a class of OpenLineage's library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attr
from openlineage.client.facet_v2 import (
    RunFacet,
    column_lineage_dataset,
    data_quality_assertions_dataset,
    error_message_run,
    input_statistics_input_dataset,
    nominal_time_run,
    output_statistics_output_dataset,
    schema_dataset,
    test_run,
)

from drawdown.metastore.records import Run
from drawdown.observe.lineage.column_lineage import DIRECT, Origin, OutputColumns
from drawdown.observe.lineage.datasets import DatasetName
from drawdown.observe.lineage.facts import Amount, RunFacts
from drawdown.spec import Pipeline
from drawdown.spec.reading.secrets import holds_a_secret

SLICE_SCHEMA = "urn:drawdown:lineage:1-0-0:SliceRunFacet.json#/$defs/SliceRunFacet"
"""Its text is docs/schema/lineage-slice.schema.json."""

_LONGEST = 1_000
_SUBTYPES = {
    "identity": "IDENTITY", "transformation": "TRANSFORMATION", "aggregation": "AGGREGATION",
    "filter": "FILTER", "join": "JOIN", "group by": "GROUP_BY", "sort": "SORT", "window": "WINDOW",
    "conditional": "CONDITIONAL",
}  # fmt: skip
_SEVERITIES = {"fail": "error", "warn": "warn"}


@attr.define
class SliceRunFacet(RunFacet):
    """The kind of a run, and which batches of its pipeline it made visible."""

    runId: str
    kind: str
    generation: int | None
    verdict: str | None
    published: list[dict[str, int]]

    @staticmethod
    def _get_schema() -> str:
        return SLICE_SCHEMA


def slice_facet(run: Run, published: Iterable[Iterable[int]] = ()) -> SliceRunFacet:
    ranges = [
        {"generation": generation, "firstBatch": first, "lastBatch": last}
        for generation, first, last in published
    ]
    return SliceRunFacet(run.run_id, run.kind, run.generation, run.verdict, ranges)


def nominal_time(run: Run) -> nominal_time_run.NominalTimeRunFacet | None:
    """Return the interval of a replay."""
    interval = run.origin.get("interval")
    return nominal_time_run.NominalTimeRunFacet(*interval) if interval else None


def error_facet(run: Run) -> error_message_run.ErrorMessageRunFacet | None:
    """Return why a run failed: the first line, since the others may show rows."""
    if run.error is None:
        return None
    first = str(run.error.get("what") or "").partition("\n")[0]
    text = f"{run.error.get('id')}: {first}"[:_LONGEST]
    if holds_a_secret(text):
        text = f"{run.error.get('id')}: see the record of run {run.run_id}"
    return error_message_run.ErrorMessageRunFacet(text, "PYTHON")


def schema_facet(types: Mapping[str, str]) -> schema_dataset.SchemaDatasetFacet:
    fields = [schema_dataset.SchemaDatasetFacetFields(name=n, type=type) for n, type in types.items()]
    return schema_dataset.SchemaDatasetFacet(fields)


def input_statistics(amount: Amount) -> input_statistics_input_dataset.InputStatisticsInputDatasetFacet:
    return input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
        rowCount=amount.rows, size=amount.bytes, fileCount=amount.files
    )


def output_statistics(amount: Amount) -> output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet:
    return output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=amount.rows, size=amount.bytes, fileCount=amount.files
    )


def column_lineage(
    found: OutputColumns, inputs: Mapping[str, Iterable[DatasetName]]
) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    """Return from which fields of the inputs each column of the output comes."""
    return column_lineage_dataset.ColumnLineageDatasetFacet(
        fields={
            name: column_lineage_dataset.Fields(inputFields=list(_fields(origins, inputs)))
            for name, origins in found.origins.items()
            if origins
        },
        dataset=list(_fields(found.rows, inputs)),
    )


def _fields(
    origins: Iterable[Origin], inputs: Mapping[str, Iterable[DatasetName]]
) -> Iterator[column_lineage_dataset.InputField]:
    by_column: dict[tuple[str, str], list[column_lineage_dataset.Transformation]] = {}
    for each in origins:
        type = "DIRECT" if each.how in DIRECT else "INDIRECT"
        by_column.setdefault((each.source, each.column), []).append(
            column_lineage_dataset.Transformation(type=type, subtype=_SUBTYPES[each.how], masking=each.masked)
        )
    for (source, column), transformations in by_column.items():
        for dataset in inputs.get(source, ()):
            yield column_lineage_dataset.InputField(
                namespace=dataset.namespace, name=dataset.name, field=column, transformations=transformations
            )


def output_assertions(
    facts: RunFacts,
) -> data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet | None:
    """Return what the audit said about the rows; None without an expectation that was judged."""
    found = [
        data_quality_assertions_dataset.Assertion(
            assertion=each["type"],
            success=bool(each["success"]),
            column=each["kwargs"].get("column"),
            severity=_SEVERITIES.get(each["severity"]),
            name=each["name"],
            actual=_actual(each),
        )
        for each in _judged(facts)
    ]
    return data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(found) if found else None


def source_assertions(
    pipeline: Pipeline, source: str, broken: Mapping[str, int]
) -> data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet | None:
    """Return how the rules for single rows went at a source; None without rules."""
    rules = {rule.name: rule for rule in pipeline.rules_of(source)}
    found = [
        data_quality_assertions_dataset.Assertion(
            assertion="row_rule",
            success=not count,
            severity="warn" if rules[name].on_fail == "warn" else "error",
            name=name,
            actual=str(count),
        )
        for name, count in broken.items()
        if name in rules
    ]
    return data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(found) if found else None


def test_facet(facts: RunFacts) -> test_run.TestRunFacet | None:
    """Return the audit as a fact about the run: a slice that failed it is not in any output."""
    found = [
        test_run.TestExecution(
            name=each["name"],
            status="pass" if each["success"] else "fail",
            severity=_SEVERITIES.get(each["severity"]),
            type=each["type"],
            actual=_actual(each),
        )
        for each in _judged(facts)
    ]
    return test_run.TestRunFacet(found) if found else None


def _judged(facts: RunFacts) -> Iterator[Mapping[str, Any]]:
    for each in facts.verdict.results if facts.verdict is not None else ():
        if "unjudged" not in each:
            yield each


def _actual(entry: Mapping[str, Any]) -> str | None:
    """Return what was observed if it is one number: lists of values are rows of the user."""
    for value in (entry.get("observed"), entry.get("unexpected_count")):
        if isinstance(value, int | float):
            return str(value)
    return None
