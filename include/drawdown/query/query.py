"""The query of a pipeline: its sources, boundaries, watermarks, carriers and transform put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from drawdown.errors import SpecError, TransformError
from drawdown.metastore.records import QuarantineDecision
from drawdown.query.carriers import SUFFIX, carried_sources, carrier_files, with_watermark
from drawdown.query.checks.plan_tree import Node
from drawdown.query.conditions import refuse_wide_conditions
from drawdown.query.session_gaps import count_sessionless
from drawdown.query.slice_queries import prepare_queries
from drawdown.query.state.kept_state import kept_state
from drawdown.query.state.operators import Operator, stateful_operators
from drawdown.query.transforms import run_transform
from drawdown.rows.boundary import OUTPUT_METRICS, Boundary, boundary_name
from drawdown.rows.replayed import add_replayed_rows, is_replayed
from drawdown.sinks.stage import SinkStage
from drawdown.sources.files.spark_inference import found_schemas
from drawdown.sources.reader import read_static, read_stream
from drawdown.sources.spark_columns import SYSTEM_COLUMNS
from drawdown.spark.declared_schema import in_declared_order
from drawdown.spark.sentences import spark_sentence
from drawdown.spec import Pipeline, Project
from drawdown.workspace import Generation


@dataclass(frozen=True)
class Query:
    """A streaming frame that is ready to start.

    Attributes:
        output: columns of the sink, in its order.
        source_order: source names as Spark numbers them in the checkpoint; carriers end in SUFFIX.
        operators: the stateful operators of the analysed plan.
        kept: what they keep in state, see kept_state.py.
        inferred: schemas of the sources that declare none, for the first run to keep.
        replays: whose rows of the quarantine go into the first batch.
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

    @property
    def stops_early(self) -> bool:
        """Whether a batch may end without having read all of its rows."""
        return any(operator.name == "GlobalLimit" for operator in self.operators)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What only the analysed query tells of the fingerprint (plan/fingerprint.py)."""
        return {
            "source_order": list(self.source_order),
            "state.operators": [operator.keeps for operator in self.operators],
            "state.kept": list(self.kept),
            "sink.schema": ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in self.schema.fields),
        }


def build_query(
    session: SparkSession,
    generation: Generation,
    sink: SinkStage,
    late_before: datetime | None,
    aside: Mapping[str, Sequence[str]],
    replays: Sequence[QuarantineDecision] = (),
) -> Query:
    """Analyse the whole query of a generation's pipeline without starting it; makes nothing.

    Args:
        late_before: the watermark that judges the first batch.
        aside: by source the files whose rows are set aside.
        replays: whose rows go into the first batch.

    Raises:
        SpecError, SourceError, TransformError: see sources.py and transforms.py.
        RefusedError: the output does not fit the declared schema.
    """
    project, pipeline = generation.project, generation.pipeline
    refuse_wide_conditions(session, pipeline)
    boundaries = _boundaries(pipeline, late_before, aside)
    inferred = found_schemas(session, generation)
    frames: dict[str, DataFrame] = {}
    for name, source in pipeline.sources.items():
        if source.static:
            frames[name] = read_static(session, project, pipeline, name)
            continue
        raw = read_stream(session, project, pipeline, name, inferred.get(name))
        fed = _observed(pipeline, boundaries[name], raw)
        fed = add_replayed_rows(session, generation.storage, name, fed, replays)
        frames[name] = with_watermark(session, fed, source, _carrier_path(generation, name))
    result = in_declared_order(run_transform(session, pipeline, frames), sink.declared_schema(), pipeline)
    schema = result.schema
    prepare_queries(session, pipeline, schema, frames)
    result = count_sessionless(session, result)
    if not pipeline.sink.staged:
        result = result.observe(OUTPUT_METRICS, F.count(F.lit(1)).alias("rows"))
    _refuse_not_streaming(pipeline, result)
    plan = result._jdf.queryExecution().analyzed()
    order = _source_order(plan)
    _refuse_unused(pipeline, order)
    operators = stateful_operators(Node(plan))
    kept = kept_state(result, pipeline.sink.mode) if operators else ()
    return Query(session, result, schema, boundaries, order, operators, inferred, kept, tuple(replays))


def plain_output(session: SparkSession, project: Project, pipeline: Pipeline) -> DataFrame:
    """The output of the transform right over its sources, without boundaries, watermarks and carriers.

    Raises:
        as `build_query`, which has looked at the pipeline before.
    """
    frames = {}
    for name in pipeline.streaming_sources:
        raw = read_stream(session, project, pipeline, name)
        frames[name] = raw.select(*[F.col(f"`{c}`") for c in raw.columns if c not in SYSTEM_COLUMNS])
    return run_transform(session, pipeline, frames)


def _boundaries(
    pipeline: Pipeline, late_before: datetime | None, aside: Mapping[str, Sequence[str]]
) -> dict[str, Boundary]:
    boundaries = {}
    for name, source in pipeline.streaming_sources.items():
        mark = source.watermark
        furthest = mark.max_future.delta if mark is not None and mark.max_future is not None else None
        boundaries[name] = Boundary(
            name, source, pipeline.rules_of(name), furthest, late_before, aside.get(name, ())
        )
    return boundaries


def _observed(pipeline: Pipeline, boundary: Boundary, raw: DataFrame) -> DataFrame:
    try:
        return boundary.observe(raw)
    except PySparkException as cause:
        raise TransformError(
            "rule.refused",
            f"Spark refused a rule of source {boundary.name} of {pipeline.name}: {spark_sentence(cause)}",
            where=str(pipeline.folder / "quality.yaml"),
            do="fix the rule: its `check` is one SQL condition over the columns of the source",
        ) from None


def _carrier_path(generation: Generation, name: str) -> str | None:
    if name not in carried_sources(generation.pipeline):
        return None
    return carrier_files(generation.storage, generation.pipeline, generation.number, name)


def _refuse_not_streaming(pipeline: Pipeline, output: DataFrame) -> None:
    if not output.isStreaming:
        raise TransformError(
            "transform.not-streaming",
            f"the output of {pipeline.name} does not depend on any streaming source",
            where=str(pipeline.folder / pipeline.transform),
            do="use at least one streaming source in the transform",
        )


def _source_order(plan: Any) -> tuple[str, ...]:
    """Source names in the order in which MicroBatchExecution numbers the streaming leaves.

    A transform may use a source twice. Where Spark keeps one relation for both (a union), the name comes
    twice and the second has no folder in ``sources/``; where it makes another (a self-join), the
    second is ``name@1`` and is read on its own (MicroBatchExecution.logicalPlan, Spark 4.2).
    """
    order: list[str] = []
    relations: list[tuple[Any, str]] = []
    carriers_of: list[str] = []

    def walk(node: Any, inside: str | None) -> None:
        inside = boundary_name(node) or inside
        children = [node.children().apply(i) for i in range(node.children().size())]
        # What a common table expression reads is counted where it is defined, not where it is used.
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
            f"{pipeline.transform} of {pipeline.name} does not use the source(s) {', '.join(unused)}",
            where=str(pipeline.folder / "pipeline.yaml"),
            do="use them in the transform, or remove them from `sources:`",
        )
