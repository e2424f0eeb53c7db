"""Rejected rows of a batch: fetched once more, checked against the counts, staged for the quarantine."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType, TimestampType

from drawdown.errors import SourceError
from drawdown.metastore.records import StagedFile
from drawdown.rows.boundary import REJECTED_COLUMNS, BatchPlan, Boundary, Observed
from drawdown.sinks.delta.stage import DeltaSink

_LATER = ("parsed", "raw")
QUARANTINE_SCHEMA = StructType(
    [StructField(name, kind) for name, kind in REJECTED_COLUMNS.items() if name not in _LATER]
    + [StructField("batch_id", LongType()), StructField("run_id", StringType())]
    # What tables of before do not have is at the end, where Delta adds it to them.
    + [StructField("parsed", REJECTED_COLUMNS["parsed"])]
    + [StructField("generation", IntegerType()), StructField("set_aside_at", TimestampType())]
    + [StructField("raw", REJECTED_COLUMNS["raw"])]
)
"""docs/quarantine.md says where each column comes from."""


def stage_rejected(
    plan: BatchPlan,
    boundaries: Mapping[str, Boundary],
    observed: Mapping[str, Observed],
    late: Mapping[str, int],
    watermark: datetime,
    quarantine: DeltaSink,
    generation: int,
    batch_id: int,
    run_id: str,
    planned_at: datetime,
) -> list[StagedFile]:
    """Stage the rows of one batch that were set aside and are kept; usually there are none.

    Args:
        late: by source the fed rows that `watermark`, which judges the batch, has passed.
        planned_at: the time of the batch in the offset log: the same in every attempt.

    Raises:
        SourceError: ``source.changed`` when the second read does not give what was counted, because
            a file was rewritten in between or a rule gives another answer the second time.
    """
    kept = {name: _kept(boundaries[name], seen, late[name]) for name, seen in observed.items()}
    expected = sum(kept.values())
    # The table has them already: the batch is repeated for Spark alone, as its output is (Sink.write).
    if expected == 0 or quarantine.holds(generation, batch_id):
        return []
    frames = [
        boundary.rejected(plan.source_frame(name), watermark)
        for name, boundary in boundaries.items()
        if kept[name]
    ]
    rows: DataFrame = reduce(DataFrame.unionByName, frames)
    rows = rows.withColumns(
        {
            "batch_id": F.lit(batch_id).cast("bigint"),
            "run_id": F.lit(run_id),
            "generation": F.lit(generation),
            "set_aside_at": F.lit(planned_at),
        }
    )
    staged = quarantine.write(rows.select(*QUARANTINE_SCHEMA.fieldNames()), generation, batch_id)
    found = sum(file.rows for file in staged)
    if found != expected:
        quarantine.remove(staged)
        raise SourceError(
            "source.changed",
            f"{expected} rows were set aside and a second read of the batch finds {found}",
            where=f"batch {batch_id}, sources {', '.join(observed)}",
            do="look for files rewritten during the run, or for row rules that are not deterministic",
        )
    return staged


def _kept(boundary: Boundary, seen: Observed, late: int) -> int:
    dropped = seen.malformed if boundary.source.malformed == "drop" else 0
    return seen.rejected - dropped + (late if boundary.keeps_late else 0)
