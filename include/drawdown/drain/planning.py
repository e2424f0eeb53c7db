"""A pipeline's plan: what a drain would refuse, warn of and note, found without touching anything.

`drawdown plan` prints it, and a drain begins with it: both say the same, and what is refused is refused
before a folder, a table, a checkpoint or a record of it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from drawdown.checkpoint import CheckpointFiles
from drawdown.drain.batch import EPOCH
from drawdown.drain.listener import listener_of
from drawdown.drain.reconcile import refuse_foreign_checkpoint, refuse_unpublished
from drawdown.drain.uncounted import refuse_gaps
from drawdown.errors import DrawdownError, RefusedError, TransformError
from drawdown.metastore.records import Checkpoint, QuarantineDecision
from drawdown.plan.changes import change_verdicts, changes, refusal
from drawdown.plan.fingerprint import spec_fingerprint
from drawdown.plan.moved import refuse_moved
from drawdown.query.checks.registry import examine
from drawdown.query.checks.subject import Subject
from drawdown.query.query import Query, build_query
from drawdown.recovery.behind import refuse_older_metastore
from drawdown.recovery.faults import sink_log
from drawdown.rows.rejects import QUARANTINE_SCHEMA
from drawdown.sinks.delta.stage import DeltaSink
from drawdown.sinks.stage import SinkStage, sink_for
from drawdown.sources.committed_offsets import CommittedOffsets
from drawdown.sources.delta.backlog import refuse_made_again
from drawdown.sources.files.spark_inference import found_schemas
from drawdown.sources.files.spark_trouble import FileTrouble, find_file_trouble
from drawdown.sources.kafka.spark_losses import Losses, find_losses
from drawdown.sources.spark_columns import schema_of
from drawdown.sources.test.reader import refuse_second_socket
from drawdown.spark.query_failures import from_spark
from drawdown.spark.session import query_session
from drawdown.spark.versions import engine_versions
from drawdown.spec import Pipeline
from drawdown.spec.trigger import AVAILABLE_NOW, Trigger, is_asynchronous, is_uncounted
from drawdown.verdicts import Level, PlanVerdict
from drawdown.workspace import Generation, Workspace

_LEVELS: tuple[Level, ...] = ("refused", "warning", "allowed", "note")
_Seen = TypeVar("_Seen")


@dataclass(frozen=True)
class PipelinePlan:
    """What is known of a pipeline's next run.

    Attributes:
        generation: the one in use, or that which the first run makes.
        fingerprint: what the checkpoint freezes of this spec, as far as it is known.
        query: None when a source or the transform was refused.
        losses: what is gone at Kafka sources that go on without it (failOnDataLoss: false).
        trouble: files that are not what they should be, and what the run goes on with.
        verdicts: everything found, refusals first.
        errors: what a drain raises, the first of them first; empty when nothing is refused.
    """

    generation: Generation
    fingerprint: dict[str, Any]
    query: Query | None
    losses: Losses
    trouble: FileTrouble
    verdicts: tuple[PlanVerdict, ...]
    errors: tuple[DrawdownError, ...]

    def accepted(self) -> Query:
        """The query, when nothing is refused.

        Raises:
            SpecError, RefusedError, SourceError, TransformError: the first refusal.
        """
        if self.errors:
            raise self.errors[0]
        assert self.query is not None
        return self.query


def plan_pipeline(
    root: SparkSession,
    workspace: Workspace,
    pipeline: Pipeline,
    trigger: Trigger = AVAILABLE_NOW,
) -> PipelinePlan:
    """Look at a pipeline as its next drain will, or a watch; what a user can cause is in the plan.

    Raises:
        RefusedError: ``rebuild.unfinished``: which generation is next is unknown.
    """
    generation = Generation.of(workspace, pipeline)
    files = generation.files
    found, built, troubled = _Findings(pipeline), _Findings(pipeline), _Findings(pipeline)

    found.of(lambda: _refuse_not_renamed(generation))
    found.of(lambda: _refuse_name_used(generation))
    found.of(lambda: refuse_foreign_checkpoint(generation))
    found.of(lambda: refuse_moved(pipeline, workspace.storage, files, sink_log(generation)))
    found.of(lambda: refuse_older_metastore(generation))
    if not is_asynchronous(pipeline):
        found.of(lambda: refuse_gaps(generation))
    found.of(lambda: refuse_second_socket(generation))
    found.of(lambda: _refuse_other_tables(generation))
    late_before = found.of(lambda: _late_before(files))
    replays = found.of(lambda: pending_replays(generation, trigger)) or []
    found.of(lambda: listener_of(pipeline))
    session = query_session(root, pipeline)
    sink = sink_for(workspace, pipeline)
    trouble = troubled.of(lambda: _file_trouble(session, generation))
    trouble = trouble or FileTrouble()
    query = built.of(lambda: build_query(session, generation, sink, late_before, trouble.aside, replays))
    fingerprint = {
        **spec_fingerprint(pipeline),
        **(query.fingerprint if query else {}),
        "versions": engine_versions(root),
    }
    losses = Losses()
    if query is not None:
        losses = built.of(lambda: find_losses(generation)) or losses
        built.verdicts += losses.verdicts()
    # A change is the likelier reason when the query cannot be built either.
    found.changes(generation.checkpoint, fingerprint)
    found.add(built)
    if query is not None:
        if not found.errors:
            # Else it met the same file that cannot be read.
            found.add(troubled)
        found.trouble(trouble)
        found.rules(Subject(pipeline, session, query.output, trigger))
        if not found.errors:
            found.of(lambda: refuse_unpublished(generation, fingerprint["sink"]))
            quarantine = DeltaSink.quarantine(workspace.project, pipeline)
            found.targets(sink, quarantine, query, generation.checkpoint)
    return PipelinePlan(
        generation,
        fingerprint,
        query,
        losses,
        trouble,
        found.in_order(),
        tuple(found.errors),
    )


def _refuse_other_tables(generation: Generation) -> None:
    storage, pipeline = generation.storage, generation.pipeline
    if any(source.format in ("delta", "table") for source in pipeline.streaming_sources.values()):
        past = CommittedOffsets.read(storage, generation.checkpoint)
        refuse_made_again(storage, pipeline, past.offsets_of(pipeline))


def _refuse_not_renamed(generation: Generation) -> None:
    """A renamed pipeline goes on with what it has; as a new one it would read everything again."""
    pipeline = generation.pipeline
    if pipeline.first_name is not None and generation.checkpoint is None:
        raise RefusedError(
            "rename.not-done",
            f"{pipeline.name} says `first_name: {pipeline.first_name}`, and the metastore knows no checkpoint"
            f" of {pipeline.name}",
            where=str(pipeline.folder / "pipeline.yaml"),
            do=f"drawdown rename OLD {pipeline.name} --why ..., with the name that it had until now; of a new"
            " pipeline remove the key",
        )


def _refuse_name_used(generation: Generation) -> None:
    """A new pipeline by the first name of another would be taken for that by what is kept by name alone."""
    pipeline, metastore = generation.pipeline, generation.metastore
    by_name = pipeline.sink.transactional or pipeline.sink.format in ("foreach", "foreach_batch")
    if generation.checkpoint is not None or not by_name:
        return
    for other in sorted(metastore.names() - {pipeline.name}):
        first = {each.fingerprint.get("sink.name") for each in metastore.generations(other)}
        if pipeline.name_in_sink in first:
            raise RefusedError(
                "rename.name-used",
                f"{other} had the name {pipeline.name_in_sink} first, and its sink knows its batches by it:"
                f" those of {pipeline.name} would be taken for the same, and left out",
                where=str(pipeline.folder / "pipeline.yaml"),
                do=f"give the folder {pipeline.folder.name} another name",
            )


@dataclass
class _Findings:
    """Verdicts and errors as they are found; an error is a verdict too."""

    pipeline: Pipeline
    verdicts: list[PlanVerdict] = field(default_factory=list)
    errors: list[DrawdownError] = field(default_factory=list)

    def of(self, look: Callable[[], _Seen]) -> _Seen | None:
        """What a look gives; None when it ended with an error, which is then noted."""
        try:
            return look()
        except DrawdownError as error:
            self._refused(error)
        except (PySparkException, Py4JJavaError) as cause:
            self._refused(from_spark(self.pipeline, cause))
        return None

    def changes(self, checkpoint: Checkpoint | None, fingerprint: Mapping[str, Any]) -> None:
        """What differs from the checkpoint."""
        if checkpoint is None:
            return
        found = changes(checkpoint.fingerprint, fingerprint)
        self.verdicts += change_verdicts(found)
        error = refusal(self.pipeline, found)
        if error is not None:
            self.errors.append(error)

    def rules(self, subject: Subject) -> None:
        """What the rules of examine/ say of the analysed query."""
        found = examine(subject)
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
        """Whether sink and quarantine are this checkpoint's, or free."""
        identity = self.of(lambda: sink.check(sink.declared_schema() or query.schema, checkpoint))
        self.of(lambda: quarantine.check(QUARANTINE_SCHEMA, checkpoint))
        if identity is not None and not any(v.about == "sink" for v in self.verdicts):
            self.changes(checkpoint, {"sink.identity": identity})

    def trouble(self, trouble: FileTrouble) -> None:
        """Files that are not what they should be."""
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
    """Replays of set-aside rows whose batch is not committed: it is the next one.

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
            f"{sum(each.rows for each in pending)} row(s) of the quarantine wait for the next batch",
            where=f"pipeline {pipeline.name}",
            do=f"`drawdown run {pipeline.name}` feeds them; then watch it",
        )
    return pending


def _late_before(files: CheckpointFiles) -> datetime | None:
    """The watermark that judges the next run's first batch; None before there is any."""
    last = files.last_commit_batch()
    return None if last is None else EPOCH + timedelta(milliseconds=files.late_watermark(last + 1))


def _file_trouble(session: SparkSession, generation: Generation) -> FileTrouble:
    """See spark_trouble.py; before the first run, an inferred schema is that of the files there are."""
    pipeline, kept = generation.pipeline, {}
    if generation.checkpoint is not None:
        kept = found_schemas(session, generation)
    return find_file_trouble(generation, lambda name: kept.get(name) or schema_of(pipeline, name))
