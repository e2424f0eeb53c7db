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
from drawdown.engine.batch import EPOCH
from drawdown.engine.examine import Subject, examine
from drawdown.engine.failures import from_spark
from drawdown.engine.file_trouble import FileTrouble, find_file_trouble
from drawdown.engine.listener import listener_of
from drawdown.engine.losses import Losses, find_losses
from drawdown.engine.query import Query, build_query
from drawdown.engine.rejects import QUARANTINE_SCHEMA
from drawdown.engine.session import query_session
from drawdown.engine.settle import refuse_foreign_checkpoint, refuse_older_metastore, refuse_unpublished
from drawdown.engine.sinks import DeltaSink, Sink, sink_for
from drawdown.engine.sources.columns import schema_of
from drawdown.engine.sources.generated import refuse_second_socket
from drawdown.engine.sources.inference import found_schemas
from drawdown.engine.uncounted import refuse_gaps
from drawdown.engine.versions import engine_versions
from drawdown.errors import DrawdownError, RefusedError, TransformError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Checkpoint, QuarantineDecision
from drawdown.plan.changes import change_verdicts, changes, refusal
from drawdown.plan.delta_backlog import refuse_made_again
from drawdown.plan.fingerprint import spec_fingerprint
from drawdown.plan.moved import refuse_moved
from drawdown.plan.preflight import Past
from drawdown.plan.verdicts import Level, PlanVerdict
from drawdown.recovery.generation import Generation
from drawdown.spec import Pipeline, Project
from drawdown.spec.trigger import AVAILABLE_NOW, Trigger, is_asynchronous, is_uncounted
from drawdown.storage import Storage

_LEVELS: tuple[Level, ...] = ("refused", "warning", "allowed", "note")
_Seen = TypeVar("_Seen")


@dataclass(frozen=True)
class PipelinePlan:
    """What is known of a pipeline's next run.

    Attributes:
        checkpoint: the active generation, or None before the first run.
        generation: its number, or that which the first run makes.
        path: the checkpoint's folder, relative to the storage root.
        fingerprint: what the checkpoint freezes of this spec, as far as it is known.
        query: None when a source or the transform was refused.
        losses: what is gone at Kafka sources that go on without it (failOnDataLoss: false).
        trouble: files that are not what they should be, and what the run goes on with.
        verdicts: everything found, refusals first.
        errors: what a drain raises, the first of them first; empty when nothing is refused.
    """

    pipeline: Pipeline
    checkpoint: Checkpoint | None
    generation: int
    path: str
    files: CheckpointFiles
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
    project: Project,
    pipeline: Pipeline,
    metastore: Metastore,
    trigger: Trigger = AVAILABLE_NOW,
) -> PipelinePlan:
    """Look at a pipeline as its next drain will, or a watch; what a user can cause is in the plan.

    Raises:
        RefusedError: ``rebuild.unfinished``: which generation is next cannot be told.
    """
    checkpoint = metastore.active_checkpoint(pipeline.name)
    generation = checkpoint.generation if checkpoint else metastore.next_generation(pipeline.name)
    path = f"_drawdown/{pipeline.name}/checkpoint-{generation}"
    storage = Storage(project.storage_root)
    files = CheckpointFiles(storage, path)
    found, built, troubled = _Findings(pipeline), _Findings(pipeline), _Findings(pipeline)

    live = Generation(project, pipeline, metastore, checkpoint)
    found.of(lambda: refuse_foreign_checkpoint(live))
    found.of(lambda: refuse_moved(pipeline, storage, files, live.sink_log))
    found.of(lambda: refuse_older_metastore(metastore, pipeline, checkpoint, files))
    if not is_asynchronous(pipeline):
        found.of(lambda: refuse_gaps(pipeline, files, storage.path(path)))
    found.of(lambda: refuse_second_socket(pipeline, checkpoint, files))
    found.of(lambda: _refuse_other_tables(storage, pipeline, checkpoint))
    late_before = found.of(lambda: _late_before(files))
    replays = found.of(lambda: pending_replays(pipeline, metastore, checkpoint, files, trigger)) or []
    found.of(lambda: listener_of(pipeline))
    session = query_session(root, pipeline)
    sink = sink_for(project, pipeline, metastore)
    trouble = troubled.of(lambda: _file_trouble(session, project, pipeline, metastore, checkpoint))
    trouble = trouble or FileTrouble()
    query = built.of(
        lambda: build_query(session, project, pipeline, sink, generation, late_before, trouble.aside, replays)
    )
    fingerprint = {
        **spec_fingerprint(pipeline),
        **(query.fingerprint if query else {}),
        "versions": engine_versions(root),
    }
    losses = Losses()
    if query is not None:
        losses = built.of(lambda: find_losses(project, pipeline, metastore, checkpoint, files)) or losses
        built.verdicts += losses.verdicts()
    # A change is the likelier reason when the query cannot be built either.
    found.changes(checkpoint, fingerprint)
    found.add(built)
    if query is not None:
        if not found.errors:
            # Else it met the same file that cannot be read.
            found.add(troubled)
        found.trouble(trouble)
        found.rules(Subject(pipeline, session, query.output, trigger))
        if not found.errors:
            found.of(lambda: refuse_unpublished(metastore, pipeline, checkpoint, fingerprint["sink"]))
            found.targets(sink, DeltaSink.quarantine(project, pipeline), query, checkpoint)
    return PipelinePlan(
        pipeline,
        checkpoint,
        generation,
        path,
        files,
        fingerprint,
        query,
        losses,
        trouble,
        found.in_order(),
        tuple(found.errors),
    )


def _refuse_other_tables(storage: Storage, pipeline: Pipeline, checkpoint: Checkpoint | None) -> None:
    if any(source.format in ("delta", "table") for source in pipeline.streaming_sources.values()):
        refuse_made_again(storage, pipeline, Past.read(storage, checkpoint).offsets_of(pipeline))


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

    def targets(self, sink: Sink, quarantine: DeltaSink, query: Query, checkpoint: Checkpoint | None) -> None:
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


def pending_replays(
    pipeline: Pipeline,
    metastore: Metastore,
    checkpoint: Checkpoint | None,
    files: CheckpointFiles,
    trigger: Trigger = AVAILABLE_NOW,
) -> list[QuarantineDecision]:
    """Replays of set-aside rows whose batch is not committed: it is the next one.

    Raises:
        RefusedError: ``quarantine.pending``: the trigger leaves batches to Spark's own sink.
    """
    if checkpoint is None:
        return []
    last = files.last_commit_batch()
    first = 0 if last is None else last + 1
    pending = metastore.replays(pipeline.name, checkpoint.generation, first_batch=first)
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


def _file_trouble(
    session: SparkSession,
    project: Project,
    pipeline: Pipeline,
    metastore: Metastore,
    checkpoint: Checkpoint | None,
) -> FileTrouble:
    """See file_trouble.py; before the first run, a schema that is inferred is that of the files there are."""
    kept = found_schemas(session, project, pipeline, checkpoint.generation) if checkpoint else {}
    return find_file_trouble(
        project, pipeline, metastore, checkpoint, lambda name: kept.get(name) or schema_of(pipeline, name)
    )
