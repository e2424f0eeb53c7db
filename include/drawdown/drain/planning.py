"""A pipeline's plan: what the next drain would refuse, warn about and record. Nothing is written.

`drawdown plan` prints it and every drain starts with it, so both agree, and a refusal comes before any
folder, table, checkpoint or record is created.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from drawdown.checkpoint import CheckpointFiles
from drawdown.drain.before_spark import checks
from drawdown.drain.listener import listener_of
from drawdown.drain.reconcile import refuse_unpublished
from drawdown.errors import DrawdownError, RefusedError, TransformError
from drawdown.metastore.records import Checkpoint, QuarantineDecision
from drawdown.plan.begun_batch import finishing, postponed_rules
from drawdown.plan.deaths import looks_thoroughly
from drawdown.plan.fingerprint import spec_fingerprint
from drawdown.plan.spec_changes import change_verdicts, changes, refusal
from drawdown.plan_verdicts import Level, PlanVerdict
from drawdown.quality.expectations import refuse_unknown
from drawdown.query.checks.all_checks import examine
from drawdown.query.checks.subject import Subject
from drawdown.query.query import FirstBatch, Query, build_query
from drawdown.recovery.repair.older_sink import refuse_older_sink
from drawdown.rows.quarantine_staging import QUARANTINE_SCHEMA
from drawdown.sinks.delta.stage import DeltaSink
from drawdown.sinks.stage import SinkStage, sink_for
from drawdown.sources.delta.identity import refuse_other_tables
from drawdown.sources.files.notified.spark_arrived import tell_arrived
from drawdown.sources.files.spark_inference import found_schemas
from drawdown.sources.files.spark_rising import list_from
from drawdown.sources.files.spark_trouble import FileTrouble, find_file_trouble
from drawdown.sources.kafka.spark_losses import Losses, find_losses
from drawdown.sources.spark_system_columns import schema_of
from drawdown.sources.test.reader import refuse_second_socket
from drawdown.spark.query_failures import from_spark
from drawdown.spark.session import query_session
from drawdown.spark.versions import engine_versions
from drawdown.spec import Pipeline
from drawdown.spec.scheduling.trigger import AVAILABLE_NOW, Trigger, is_uncounted
from drawdown.values.interval import EPOCH
from drawdown.values.text import counted
from drawdown.workspace import Generation, Workspace

_LEVELS: tuple[Level, ...] = ("refused", "warning", "allowed", "note")
_Seen = TypeVar("_Seen")


@dataclass(frozen=True)
class PipelinePlan:
    """What the next run of a pipeline would do.

    Attributes:
        generation: the one in use, or the one that the first run creates.
        fingerprint: the parts of this spec that the checkpoint freezes, as far as known.
        query: None when a source or the transform was refused; ``errors`` says why.
        losses: offsets that Kafka sources with failOnDataLoss: false will skip because they are gone.
        trouble: damaged or changed files that the run tolerates.
        verdicts: everything found, refusals first.
        errors: what a drain raises, in order; empty when nothing is refused.
    """

    generation: Generation
    fingerprint: dict[str, Any]
    query: Query | None
    losses: Losses
    trouble: FileTrouble
    verdicts: tuple[PlanVerdict, ...]
    errors: tuple[DrawdownError, ...]

    def accepted(self) -> Query:
        """Return the query if nothing is refused.

        Raises:
            SpecError, RefusedError, SourceError, TransformError: the first refusal.
        """
        if self.query is None or self.errors:
            raise self.errors[0]
        return self.query


def plan_pipeline(
    root: SparkSession,
    workspace: Workspace,
    pipeline: Pipeline,
    trigger: Trigger = AVAILABLE_NOW,
) -> PipelinePlan:
    """Plan the next drain or watch of a pipeline; every mistake a user can make becomes part of the plan.

    Raises:
        RefusedError: ``rebuild.unfinished``: the next generation is unknown.
    """
    generation = Generation.of(workspace, pipeline)
    files = generation.files
    found, built, troubled = _Findings(pipeline), _Findings(pipeline), _Findings(pipeline)
    pipeline = found.of(lambda: finishing(generation)) or pipeline
    generation = replace(generation, pipeline=pipeline)

    for check in checks(generation):
        found.of(check)
    found.of(lambda: refuse_second_socket(generation))
    found.of(lambda: refuse_other_tables(generation))
    late_before = found.of(lambda: _late_before(files))
    replays = found.of(lambda: pending_replays(generation, trigger)) or []
    found.of(lambda: listener_of(pipeline))
    found.of(lambda: refuse_unknown(pipeline))
    found.verdicts += _postponed(pipeline)
    if (waits := postponed_rules(pipeline)) is not None:
        found.verdicts.append(waits)
    session = query_session(root, pipeline)
    sink = sink_for(workspace, pipeline)
    # A watch lists again and again, so it has to list itself.
    by_notifications = trigger == AVAILABLE_NOW
    trouble = troubled.of(lambda: _file_trouble(session, generation, by_notifications))
    trouble = trouble or FileTrouble()
    list_from(session, workspace.project, pipeline, trouble.listed_from)
    tell_arrived(session, generation, trouble.arrived)
    first = FirstBatch(late_before, trouble.aside, tuple(replays), trouble.unread)
    query = built.of(lambda: build_query(session, generation, sink, first))
    fingerprint = {
        **spec_fingerprint(pipeline),
        **(query.fingerprint if query else {}),
        "versions": engine_versions(root),
    }
    losses = Losses()
    if query is not None:
        losses = built.of(lambda: find_losses(generation)) or losses
        built.verdicts += losses.verdicts()
    # If the query cannot be built, a changed spec is the likelier reason.
    found.changes(generation.checkpoint, fingerprint)
    found.add(built)
    if query is not None:
        if not found.errors:
            # Otherwise building the query failed on the same unreadable file.
            found.add(troubled)
        found.trouble(trouble)
        found.rules(Subject(pipeline, session, query.output, trigger))
        if not found.errors:
            found.of(lambda: refuse_unpublished(generation, fingerprint["sink"]))
            quarantine = DeltaSink.quarantine(workspace.project, pipeline)
            found.targets(sink, quarantine, query, generation.checkpoint)
            found.of(lambda: refuse_older_sink(generation))
    return PipelinePlan(
        generation,
        fingerprint,
        query,
        losses,
        trouble,
        found.in_order(),
        tuple(found.errors),
    )


def _postponed(pipeline: Pipeline) -> Iterator[PlanVerdict]:
    """Warn of changed keys of the sink that wait: a batch becomes visible as it was staged."""
    for key in pipeline.postponed:
        yield PlanVerdict(
            "warning",
            "sink.postponed",
            f"`{key}` takes effect once no older batch of {pipeline.name} waits: they become visible as they"
            " were staged, and so do the batches of this run",
            do=f"run it, or decide about held slices: `drawdown release {pipeline.name} --why ...` or"
            f" `drawdown discard {pipeline.name} --why ...`",
            about="sink",
        )


@dataclass
class _Findings:
    """Collects verdicts and errors; every error is also a verdict."""

    pipeline: Pipeline
    verdicts: list[PlanVerdict] = field(default_factory=list)
    errors: list[DrawdownError] = field(default_factory=list)

    def of(self, look: Callable[[], _Seen]) -> _Seen | None:
        """Return the result of a check; None if it raised, and then record the error."""
        try:
            return look()
        except DrawdownError as error:
            self._refused(error)
        except (PySparkException, Py4JJavaError) as cause:
            self._refused(from_spark(self.pipeline, cause))
        return None

    def changes(self, checkpoint: Checkpoint | None, fingerprint: Mapping[str, Any]) -> None:
        """Record what differs from the checkpoint."""
        if checkpoint is None:
            return
        found = changes(checkpoint.fingerprint, fingerprint)
        self.verdicts += change_verdicts(self.pipeline.name, found)
        error = refusal(self.pipeline, found)
        if error is not None:
            self.errors.append(error)

    def rules(self, subject: Subject) -> None:
        """Record what the rules in query/checks/ find in the analysed query."""
        found = self.of(lambda: examine(subject)) or []
        self.verdicts += found
        refused = [verdict for verdict in found if verdict.level == "refused"]
        if refused:
            first, *others = refused
            self.errors.append(
                TransformError(
                    first.id,
                    first.what + "".join(f"; also: {verdict.what}" for verdict in others),
                    where=str(self.pipeline.folder / self.pipeline.transform),
                    do=first.do,
                )
            )

    def targets(
        self, sink: SinkStage, quarantine: DeltaSink, query: Query, checkpoint: Checkpoint | None
    ) -> None:
        """Check that sink and quarantine belong to this checkpoint or to none."""
        identity = self.of(lambda: sink.check(sink.declared_schema() or query.schema, checkpoint))
        self.of(lambda: quarantine.check(QUARANTINE_SCHEMA, checkpoint))
        if identity is not None and not any(v.about == "sink" for v in self.verdicts):
            self.changes(checkpoint, {"sink.identity": identity})

    def trouble(self, trouble: FileTrouble) -> None:
        """Record damaged or changed files."""
        self.verdicts += trouble.verdicts
        for error in trouble.refusals:
            self._refused(error)

    def add(self, later: _Findings) -> None:
        self.verdicts += later.verdicts
        self.errors += later.errors

    def in_order(self) -> tuple[PlanVerdict, ...]:
        return tuple(sorted(self.verdicts, key=lambda verdict: _LEVELS.index(verdict.level)))

    def _refused(self, error: DrawdownError) -> None:
        self.errors.append(error)
        self.verdicts.append(PlanVerdict("refused", error.id, error.what, do=error.do, about=error.where))


def pending_replays(generation: Generation, trigger: Trigger = AVAILABLE_NOW) -> list[QuarantineDecision]:
    """Return replays of quarantined rows whose batch is not committed yet; the next batch will contain them.

    Raises:
        RefusedError: ``quarantine.pending``: the trigger leaves batches to Spark's own sink.
    """
    if generation.checkpoint is None:
        return []
    pipeline, last = generation.pipeline, generation.files.last_commit_batch()
    pending = generation.replays(first_batch=0 if last is None else last + 1)
    if pending and is_uncounted(pipeline, trigger):
        raise RefusedError(
            "quarantine.pending",
            f"waiting for the next batch: {counted(sum(each.rows for each in pending), 'quarantined row')}",
            where=f"pipeline {pipeline.name}",
            do=f"`drawdown run {pipeline.name}` feeds them; then watch it",
        )
    return pending


def _late_before(files: CheckpointFiles) -> datetime | None:
    """Return the watermark that decides lateness in the next run's first batch; None if there is none yet."""
    last = files.last_commit_batch()
    return None if last is None else EPOCH + timedelta(milliseconds=files.late_watermark(last + 1))


def _file_trouble(session: SparkSession, generation: Generation, by_notifications: bool) -> FileTrouble:
    """Return the file trouble (spark_trouble.py); before the first run the schema is inferred from the
    existing files."""
    pipeline, kept = generation.pipeline, {}
    if generation.checkpoint is not None:
        kept = found_schemas(session, generation)
    columns = lambda name: kept.get(name) or schema_of(pipeline, name)  # noqa: E731
    thorough = looks_thoroughly(generation.metastore, pipeline.name)
    return find_file_trouble(generation, columns, by_notifications, thorough)
