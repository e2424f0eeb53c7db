"""Sources read once, up to where a checkpoint has read them: the input of a replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from drawdown.kinds import code_at
from drawdown.sources.replay_basis import ReplayBasis, ReplayedSource, replay_of
from drawdown.sources.spark_system_columns import CORRUPT
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
            RefusedError, SourceError: as the `ReplayCode.check` of its kind.
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
        of = ReplayedSource(self.workspace, self.pipeline, self.basis, self.interval, name)
        read: Callable[..., DataFrame] = code_at(of.code.rows)
        return read(self.session, of, inferred)
