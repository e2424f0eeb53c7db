"""Stages the rejected rows of a batch for the quarantine: fetched again and checked against the counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType, TimestampType

from drawdown.errors import SourceError
from drawdown.metastore.records import StagedFile
from drawdown.rows.row_fates import REJECTED_COLUMNS, BatchPlan, Boundary, Observed
from drawdown.sinks.delta.stage import DeltaSink
from drawdown.values.text import counted

_LATER = ("parsed", "raw", "read_as")
QUARANTINE_SCHEMA = StructType(
    [StructField(name, kind) for name, kind in REJECTED_COLUMNS.items() if name not in _LATER]
    + [StructField("batch_id", LongType()), StructField("run_id", StringType())]
    # Columns that older tables lack come last, where Delta adds them.
    + [StructField("parsed", REJECTED_COLUMNS["parsed"])]
    + [StructField("generation", IntegerType()), StructField("set_aside_at", TimestampType())]
    + [StructField(name, REJECTED_COLUMNS[name]) for name in ("raw", "read_as")]
)
"""docs/quarantine.md says where each column comes from."""


@dataclass(frozen=True)
class JudgedBatch:
    """One attempt at a batch, after its rows were judged.

    Attributes:
        late: by source, the number of fed rows behind `watermark`.
        planned_at: the time of the batch in the offset log: the same in every attempt.
    """

    plan: BatchPlan
    boundaries: Mapping[str, Boundary]
    observed: Mapping[str, Observed]
    late: Mapping[str, int]
    watermark: datetime
    generation: int
    batch_id: int
    run_id: str
    planned_at: datetime


def stage_rejected(batch: JudgedBatch, quarantine: DeltaSink) -> list[StagedFile]:
    """Stage the rejected rows of one batch that are to be kept; usually there are none.

    Raises:
        SourceError: ``source.changed`` when the second read does not match the counts, because a file was
            rewritten in between or a rule is not deterministic.
    """
    kept = {
        name: _kept(batch.boundaries[name], seen, batch.late[name]) for name, seen in batch.observed.items()
    }
    expected = sum(kept.values())
    # The table already has them: this attempt only restores Spark's state, as for the output (Sink.write).
    if expected == 0 or quarantine.holds(batch.generation, batch.batch_id):
        return []
    frames = [
        boundary.rejected(batch.plan.source_frame(name), batch.watermark)
        for name, boundary in batch.boundaries.items()
        if kept[name]
    ]
    rows: DataFrame = reduce(DataFrame.unionByName, frames)
    rows = rows.withColumns(
        {
            "batch_id": F.lit(batch.batch_id).cast("bigint"),
            "run_id": F.lit(batch.run_id),
            "generation": F.lit(batch.generation),
            "set_aside_at": F.lit(batch.planned_at),
        }
    )
    staged = quarantine.write(rows.select(*QUARANTINE_SCHEMA.fieldNames()), batch.generation, batch.batch_id)
    found = sum(file.rows for file in staged)
    if found != expected:
        quarantine.remove(staged)
        raise SourceError(
            "source.changed",
            f"{counted(expected, 'row')} rejected, but a second read of the batch finds {found}",
            where=f"batch {batch.batch_id}, sources {', '.join(batch.observed)}",
            do="look for files rewritten during the run, or for row rules that are not deterministic",
        )
    return staged


def _kept(boundary: Boundary, seen: Observed, late: int) -> int:
    dropped = seen.malformed if boundary.source.malformed == "drop" else 0
    return seen.rejected - dropped + (late if boundary.keeps_late else 0)
