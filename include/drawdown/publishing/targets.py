"""Which Target a pipeline's output and its quarantine have."""

from __future__ import annotations

from collections.abc import Sequence

from drawdown.metastore.records import StagedTable
from drawdown.publishing.delta_table import DeltaTableFiles
from drawdown.publishing.delta_target import DeltaTarget
from drawdown.publishing.kafka_target import KafkaTarget
from drawdown.publishing.target import Replaceable, Target
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage


def output_uri(project: Project, pipeline: Pipeline) -> str:
    """Where a sink that keeps files is."""
    assert pipeline.sink.path is not None
    return _place(project, pipeline, pipeline.sink.path)


def quarantine_uri(project: Project, pipeline: Pipeline) -> str:
    """Where the pipeline's rejected rows are."""
    return _place(project, pipeline, f"quarantine/{pipeline.name}")


def _place(project: Project, pipeline: Pipeline, path: str) -> str:
    return Storage(project.storage_root).path("/".join(filter(None, (path, pipeline.apart))))


def target_of(
    project: Project, pipeline: Pipeline, table: StagedTable, keys: Sequence[str] | None = None
) -> Target | None:
    """None for a sink that shows each batch itself, as it is written.

    Args:
        keys: under which the rows were staged, where they are known; else those of the spec.
    """
    storage = Storage(project.storage_root)
    if table == "quarantine":
        return DeltaTarget(storage, DeltaTableFiles(quarantine_uri(project, pipeline)))
    sink = pipeline.sink
    keys = sink.keys if keys is None else keys
    if sink.format == "delta":
        files = DeltaTableFiles(output_uri(project, pipeline))
        return DeltaTarget(storage, files, sink.mode, keys)
    if sink.transactional:
        return KafkaTarget(storage, project.brokers[sink.broker], pipeline.name, sink)
    if sink.format == "postgres":
        # Here: psycopg is loaded for those who need it.
        from drawdown.publishing.postgres_table import PostgresTable
        from drawdown.publishing.postgres_target import PostgresTarget

        into = PostgresTable.of(str(sink.table))
        return PostgresTarget(storage, project.databases[sink.database], into, sink.mode, keys)
    return None


def replaceable_of(project: Project, pipeline: Pipeline) -> Replaceable:
    """The output of a pipeline that says `replay:` (spec/replay.py lets no other sink say it)."""
    target = target_of(project, pipeline, "output")
    assert isinstance(target, Replaceable)
    return target
