"""Sources read once, up to where a checkpoint has read them: what a replay is made of."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from drawdown.sources.delta.reader import read_this_version
from drawdown.sources.delta.replay import version_to_read
from drawdown.sources.files.reader import read_these_files
from drawdown.sources.files.replay import files_to_read
from drawdown.sources.kafka.reader import read_these_offsets
from drawdown.sources.kafka.replay import offsets_to_read
from drawdown.sources.replay_basis import ReplayBasis, replay_of
from drawdown.sources.spark_columns import CORRUPT, schema_of
from drawdown.spec import Pipeline
from drawdown.values.interval import Interval
from drawdown.workspace import Workspace


def read_bounded(
    session: SparkSession,
    workspace: Workspace,
    pipeline: Pipeline,
    name: str,
    inferred: StructType | None,
    basis: ReplayBasis,
    interval: Interval,
    undated: bool,
) -> DataFrame:
    """What a source had given by the basis of the event times that a replay wants, as `read_stream` gives it.

    A source without a watermark is read whole. A malformed row belongs to no interval.

    Args:
        inferred: as for `read_stream`.
        undated: rows without event time, too: the transform may give them a time from elsewhere.

    Raises:
        RefusedError, SourceError: as `files_to_read`, `offsets_to_read` and `version_to_read`.
        SpecError: the schema does not parse.
    """
    source, declared = pipeline.sources[name], replay_of(pipeline)
    if source.format == "kafka":
        broker = workspace.project.brokers[source.broker]
        ranges = offsets_to_read(broker, workspace.metastore, pipeline, basis, name, interval)
        frame = read_these_offsets(session, workspace.project, pipeline, name, ranges)
    elif source.format in ("delta", "table"):
        version = version_to_read(workspace.storage, pipeline, basis, name)
        frame = read_this_version(session, workspace.project, pipeline, name, version)
    else:
        schema = inferred or schema_of(pipeline, name) or StructType([StructField("value", StringType())])
        files = files_to_read(workspace, pipeline, basis, name, interval)
        frame = read_these_files(session, workspace.storage, source, schema, files)
    if source.watermark is None:
        return frame
    wanted = interval.wider(declared.lookback.delta, declared.lookahead.delta)
    time = F.col(f"`{source.watermark.column}`").cast("timestamp")
    within = (time >= F.lit(wanted.start)) & (time < F.lit(wanted.end))
    return frame.where(within | (time.isNull() & F.col(CORRUPT).isNull()) if undated else within)
