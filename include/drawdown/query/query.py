"""The query of a pipeline, assembled from its sources, boundaries, watermarks, carriers and transform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from drawdown.errors import SpecError, TransformError
from drawdown.metastore.records import QuarantineDecision
from drawdown.query.carriers import SUFFIX, carried_sources, carrier_files, with_watermark
from drawdown.query.checks.plan_tree import PlanNode
from drawdown.query.conditions import refuse_unfit_conditions, refuse_wide_conditions, refused_rule
from drawdown.query.rows_without_window import count_sessionless
from drawdown.query.slice_queries import prepare_queries
from drawdown.query.state.kept_state import kept_state
from drawdown.query.state.operators import Operator, stateful_operators
from drawdown.query.transforms import run_transform
from drawdown.rows.quarantine_replay import add_replayed_rows, is_replayed
from drawdown.rows.row_fates import OUTPUT_METRICS, Boundary, boundary_name
from drawdown.sinks.stage import SinkStage
from drawdown.sources.files.spark_inference import found_schemas
from drawdown.sources.reader import read_static, read_stream
from drawdown.sources.spark_system_columns import SYSTEM_COLUMNS
from drawdown.spark.declared_schema import in_declared_order
from drawdown.spark.named_columns import named
from drawdown.spark.sql_failures import as_refusal
from drawdown.spec import Pipeline, Project
from drawdown.static_checks.judged_columns import check_judged_columns
from drawdown.static_checks.places import Places
from drawdown.static_checks.relation import Relation
from drawdown.values.column import Column
from drawdown.workspace import Generation


@dataclass(frozen=True)
class FirstBatch:
    """What the first batch of the next run goes by, beside the sources.

    Attributes:
        late_before: the watermark that judges it.
        aside: by source, the files whose rows go to the quarantine.
        unread: by source, the files that are not opened.
        replays: decisions whose quarantined rows go into it.
    """

    late_before: datetime | None = None
    aside: Mapping[str, Sequence[str]] = field(default_factory=dict)
    replays: tuple[QuarantineDecision, ...] = ()
    unread: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Query:
    """A streaming frame that is ready to start.

    Attributes:
        output: columns of the sink, in its order.
        source_order: source names as Spark numbers them in the checkpoint; carriers end in SUFFIX.
        operators: the stateful operators of the analysed plan.
        kept: what they keep in state, see kept_state.py.
        inferred: schemas of the sources that declare none, for the first run to store.
        replays: decisions whose quarantined rows go into the first batch.
        statics: the frames of the static sources.
    """

    session: SparkSession
    output: DataFrame
    schema: StructType
    boundaries: Mapping[str, Boundary]
    source_order: tuple[str, ...]
    operators: tuple[Operator, ...]
    inferred: Mapping[str, StructType]
    kept: Sequence[Mapping[str, Any]] = ()
    replays: tuple[QuarantineDecision, ...] = ()
    statics: Mapping[str, DataFrame] = field(default_factory=dict)

    @property
    def stops_early(self) -> bool:
        """Whether a batch may end before it has read all of its rows."""
        return any(operator.name == "GlobalLimit" for operator in self.operators)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """Return the part of the fingerprint that needs the analysed query (plan/fingerprint.py)."""
        return {
            "source_order": list(self.source_order),
            "state.operators": [operator.keeps for operator in self.operators],
            "state.kept": list(self.kept),
            "sink.schema": ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in self.schema.fields),
        }


def build_query(session: SparkSession, generation: Generation, sink: SinkStage, first: FirstBatch) -> Query:
    """Analyse the whole query of a generation's pipeline without starting it; creates nothing.

    Raises:
        SpecError, SourceError, TransformError: see sources.py and transforms.py.
        RefusedError: the output does not fit the declared schema.
    """
    project, pipeline = generation.project, generation.pipeline
    refuse_wide_conditions(session, pipeline)
    boundaries = _boundaries(pipeline, first)
    inferred = found_schemas(session, generation, first.unread)
    frames: dict[str, DataFrame] = {}
    for name, source in pipeline.sources.items():
        if source.static:
            frames[name] = read_static(session, project, pipeline, name)
            continue
        raw = read_stream(session, project, pipeline, name, inferred.get(name), first.unread.get(name, ()))
        fed = _observed(pipeline, boundaries[name], raw)
        fed = add_replayed_rows(session, generation.storage, name, fed, first.replays)
        frames[name] = with_watermark(session, fed, source, _carrier_path(generation, name))
    result = in_declared_order(run_transform(session, pipeline, frames), sink.declared_schema(), pipeline)
    schema = result.schema
    refuse_unfit_conditions(session, pipeline, schema)
    _refuse_unknown_columns(pipeline, schema)
    prepare_queries(session, pipeline, schema, frames)
    result = count_sessionless(session, result)
    if not pipeline.sink.staged:
        result = result.observe(OUTPUT_METRICS, F.count(F.lit(1)).alias("rows"))
    _refuse_not_streaming(pipeline, result)
    plan = result._jdf.queryExecution().analyzed()
    order = _source_order(plan)
    _refuse_unused(pipeline, order)
    operators = stateful_operators(PlanNode(plan))
    kept = kept_state(result, pipeline.sink.mode) if operators else ()
    statics = {name: frames[name] for name, source in pipeline.sources.items() if source.static}
    return Query(
        session, result, schema, boundaries, order, operators, inferred, kept, first.replays, statics
    )


def plain_output(session: SparkSession, project: Project, pipeline: Pipeline) -> DataFrame:
    """Return the output of the transform directly over its sources, without boundaries, watermarks, carriers.

    Raises:
        the errors of `build_query`, which has checked the pipeline before.
    """
    frames = {}
    for name in pipeline.streaming_sources:
        raw = read_stream(session, project, pipeline, name)
        frames[name] = raw.select(*[named(c) for c in raw.columns if c not in SYSTEM_COLUMNS])
    return run_transform(session, pipeline, frames)


def _boundaries(pipeline: Pipeline, first: FirstBatch) -> dict[str, Boundary]:
    boundaries = {}
    for name, source in pipeline.streaming_sources.items():
        mark = source.watermark
        furthest = mark.max_future.delta if mark is not None and mark.max_future is not None else None
        boundaries[name] = Boundary(
            name, source, pipeline.rules_of(name), furthest, first.late_before, first.aside.get(name, ())
        )
    return boundaries


def _observed(pipeline: Pipeline, boundary: Boundary, raw: DataFrame) -> DataFrame:
    try:
        with as_refusal():
            return boundary.observe(raw)
    except PySparkException as cause:
        raise refused_rule(pipeline, boundary.name, raw, cause) from None


def _carrier_path(generation: Generation, name: str) -> str | None:
    if name not in carried_sources(generation.pipeline):
        return None
    return carrier_files(generation.storage, generation.pipeline, generation.number, name)


def _refuse_unknown_columns(pipeline: Pipeline, schema: StructType) -> None:
    """Raise SpecError ``spec.unknown-column`` for an expectation on a column that the output lacks."""
    rows = Relation.of(Column(field.name, "") for field in schema.fields)
    for error in check_judged_columns(pipeline, rows, Places(pipeline)):
        raise error


def _refuse_not_streaming(pipeline: Pipeline, output: DataFrame) -> None:
    if not output.isStreaming:
        raise TransformError(
            "transform.not-streaming",
            f"the output of {pipeline.name} does not depend on any streaming source",
            where=str(pipeline.folder / pipeline.transform),
            do="use at least one streaming source in the transform",
        )


def _source_order(plan: Any) -> tuple[str, ...]:
    """Return source names in the order in which MicroBatchExecution numbers the streaming leaves.

    A transform may use a source twice. If Spark keeps one relation for both (a union), the name is listed
    twice and the second has no folder in ``sources/``; if it makes another relation (a self-join), the
    second is ``name@1`` and is read separately (MicroBatchExecution.logicalPlan, Spark 4.2).
    """
    order: list[str] = []
    relations: list[tuple[Any, str]] = []
    carriers_of: list[str] = []

    def walk(node: Any, inside: str | None) -> None:
        inside = boundary_name(node) or inside
        children = [node.children().apply(i) for i in range(node.children().size())]
        # Sources of a common table expression count where it is defined, not where it is used.
        is_source = node.nodeName() != "CTERelationRef" and not is_replayed(node)
        if not children and node.isStreaming() and is_source:
            name = inside if inside is not None else carriers_of[-1] + SUFFIX
            known = next((label for relation, label in relations if relation.equals(node)), None)
            uses = sum(label.split("@")[0] == name for _, label in relations)
            label = known or (f"{name}@{uses}" if uses else name)
            if known is None:
                relations.append((node, label))
            order.append(label)
            if inside is not None:
                carriers_of.append(inside)
        for child in children:
            walk(child, inside)

    walk(plan, None)
    return tuple(order)


def _refuse_unused(pipeline: Pipeline, order: tuple[str, ...]) -> None:
    unused = [name for name in pipeline.streaming_sources if name not in order]
    if unused:
        raise SpecError(
            "transform.unused-source",
            f"{pipeline.transform} of {pipeline.name} does not use {', '.join(unused)} of its sources",
            where=str(pipeline.folder / "pipeline.yaml"),
            do="use them in the transform, or remove them from `sources:`",
        )
