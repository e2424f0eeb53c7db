"""Which Target a pipeline's output and its quarantine have."""

from __future__ import annotations

from collections.abc import Sequence

from drawdown.changes.protocol import Replaceable, Target
from drawdown.delta.table import DeltaTableFiles
from drawdown.metastore.records import StagedTable
from drawdown.sinks.delta.publish import DeltaTarget
from drawdown.sinks.kafka.publish import KafkaTarget
from drawdown.sinks.locations import output_uri, quarantine_uri
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage


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
        return KafkaTarget(storage, project.brokers[sink.broker], pipeline.name_in_sink, sink)
    if sink.format == "postgres":
        # Here: psycopg is loaded for those who need it.
        from drawdown.sinks.postgres.publish import PostgresTarget
        from drawdown.sinks.postgres.table import PostgresTable

        into = PostgresTable.of(str(sink.table))
        return PostgresTarget(storage, project.databases[sink.database], into, sink.mode, keys)
    return None


def replaceable_of(project: Project, pipeline: Pipeline) -> Replaceable:
    """The output of a pipeline that says `replay:` (spec/replay.py lets no other sink say it)."""
    target = target_of(project, pipeline, "output")
    assert isinstance(target, Replaceable)
    return target
