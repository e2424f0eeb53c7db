"""Sources read once, up to where a checkpoint has read them: what a replay is made of."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from drawdown.engine.sources.columns import CORRUPT, schema_of
from drawdown.engine.sources.delta import read_this_version
from drawdown.engine.sources.files import read_these_files
from drawdown.engine.sources.kafka import read_these_offsets
from drawdown.metastore import Metastore
from drawdown.plan.replay import Basis, replay_of
from drawdown.plan.replay_files import files_to_read
from drawdown.plan.replay_offsets import offsets_to_read
from drawdown.plan.replay_versions import version_to_read
from drawdown.spec import Pipeline, Project
from drawdown.spec.interval import Interval
from drawdown.storage import Storage


def read_bounded(
    session: SparkSession,
    project: Project,
    pipeline: Pipeline,
    name: str,
    inferred: StructType | None,
    metastore: Metastore,
    basis: Basis,
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
    source, storage, declared = pipeline.sources[name], Storage(project.storage_root), replay_of(pipeline)
    of = metastore, pipeline, basis, name, interval
    if source.format == "kafka":
        ranges = offsets_to_read(project.brokers[source.broker], *of)
        frame = read_these_offsets(session, project, pipeline, name, ranges)
    elif source.format in ("delta", "table"):
        version = version_to_read(storage, pipeline, basis, name)
        frame = read_this_version(session, project, pipeline, name, version)
    else:
        schema = inferred or schema_of(pipeline, name) or StructType([StructField("value", StringType())])
        frame = read_these_files(session, storage, source, schema, files_to_read(storage, *of))
    if source.watermark is None:
        return frame
    wanted = interval.wider(declared.lookback.delta, declared.lookahead.delta)
    time = F.col(f"`{source.watermark.column}`").cast("timestamp")
    within = (time >= F.lit(wanted.start)) & (time < F.lit(wanted.end))
    return frame.where(within | (time.isNull() & F.col(CORRUPT).isNull()) if undated else within)
