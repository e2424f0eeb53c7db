"""Sources read once, up to where a checkpoint has read them: the input of a replay."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class BoundedReading:
    """The rows that the sources had delivered by the basis, limited to the event times that a replay needs.

    Attributes:
        undated: include rows without event time: the transform may take their time from elsewhere.
    """

    session: SparkSession
    workspace: Workspace
    pipeline: Pipeline
    basis: ReplayBasis
    interval: Interval
    undated: bool

    def rows(self, name: str, inferred: StructType | None) -> DataFrame:
        """Return the rows of one source, with the columns of `read_stream`; malformed rows have no interval.

        A source without a watermark is read completely.

        Args:
            inferred: as for `read_stream`.

        Raises:
            RefusedError, SourceError: see `files_to_read`, `offsets_to_read` and `version_to_read`.
            SpecError: the schema does not parse.
        """
        source, declared = self.pipeline.sources[name], replay_of(self.pipeline)
        frame = self._until_the_basis(name, inferred)
        if source.watermark is None:
            return frame
        wanted = self.interval.wider(declared.lookback.delta, declared.lookahead.delta)
        time = F.col(f"`{source.watermark.column}`").cast("timestamp")
        within = (time >= F.lit(wanted.start)) & (time < F.lit(wanted.end))
        return frame.where(within | (time.isNull() & F.col(CORRUPT).isNull()) if self.undated else within)

    def _until_the_basis(self, name: str, inferred: StructType | None) -> DataFrame:
        source, project, storage = self.pipeline.sources[name], self.workspace.project, self.workspace.storage
        if source.format == "kafka":
            broker = project.brokers[source.broker]
            ranges = offsets_to_read(
                broker, self.workspace.metastore, self.pipeline, self.basis, name, self.interval
            )
            return read_these_offsets(self.session, project, self.pipeline, name, ranges)
        if source.format in ("delta", "table"):
            version = version_to_read(storage, self.pipeline, self.basis, name)
            return read_this_version(self.session, project, self.pipeline, name, version)
        schema = (
            inferred or schema_of(self.pipeline, name) or StructType([StructField("value", StringType())])
        )
        files = files_to_read(self.workspace, self.pipeline, self.basis, name, self.interval)
        return read_these_files(self.session, storage, source, schema, files)
