"""Applies decisions about quarantined rows to the replay of an interval, which reads their records again.

Decisions stay valid: a dropped record stays out, one that waits for a batch after the basis comes with that
batch, and a patched one is patched again. All others are judged like any record; open ones that now pass are
part of the interval once the replay commits, and no longer open. A Kafka record is identified by its offset,
a file's record by the file and its columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import RefusedError
from drawdown.metastore.records import QuarantineDecision
from drawdown.quarantine.row_states import LATE, SetAside, set_aside, write_rows
from drawdown.quarantine.spark_restored_columns import KEY, SetAsideColumns, parse_patch
from drawdown.replay.publish import decided_rows
from drawdown.rows.row_fates import EXACT_TIMES, FATE, FED
from drawdown.sinks.locations import quarantine_uri
from drawdown.sources.replay_basis import ReplayBasis, replay_of
from drawdown.sources.spark_system_columns import CORRUPT, ORIGIN, SYSTEM_COLUMNS
from drawdown.spark.named_columns import named
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage
from drawdown.values.interval import Interval
from drawdown.values.text import counted
from drawdown.workspace import Generation

_IDENTITY = "_dd_identity"


@dataclass(frozen=True)
class DecidedRows:
    """The rows of a pipeline's quarantine that a replay's basis has read, and the decisions about them.

    Attributes:
        folder: for files of these rows, relative to the storage root; the caller removes it.
    """

    session: SparkSession
    project: Project
    pipeline: Pipeline
    basis: ReplayBasis
    interval: Interval
    decisions: Mapping[str, QuarantineDecision]
    rows: Sequence[SetAside]
    folder: str
    now_in: list[SetAside] = field(default_factory=list)

    @classmethod
    def read(
        cls,
        session: SparkSession,
        generation: Generation,
        basis: ReplayBasis,
        interval: Interval,
        folder: str,
    ) -> DecidedRows:
        """Read both as they are now.

        Args:
            generation: the one that the replay's basis belongs to.

        Raises:
            SourceError: the quarantine cannot be read.
        """
        workspace, pipeline = generation.workspace, generation.pipeline
        decisions = decided_rows(workspace.metastore, pipeline)
        table = DeltaTableFiles(quarantine_uri(workspace.project, pipeline))
        rows = set_aside(workspace, pipeline) if table.exists() and not table.is_empty else []
        known = [
            row
            for row in rows
            if row.generation in (None, generation.number)
            and row.batch_id <= basis.batch.batch_id
            and LATE not in row.reasons
        ]
        return cls(session, workspace.project, pipeline, basis, interval, decisions, known, folder)

    def obeyed(self, name: str, frame: DataFrame) -> DataFrame:
        """Apply the decisions to a frame of `BoundedReading`.

        Raises:
            RefusedError: ``replay.decided``: some of these records are not found in the source.
        """
        apart = [row for row in self._of(name) if self._stays_out(row) or self._patch(row)]
        if not apart:
            return frame
        schema = frame.drop(*SYSTEM_COLUMNS).schema
        found = self._identified(self._again(name, schema, apart, ()), name)
        with_identity = self._identified(frame, name)
        ids = F.broadcast(found.select(_IDENTITY).distinct())
        self._refuse_unknown(name, found, with_identity.join(ids, _IDENTITY, "left_semi"))
        kept = with_identity.join(ids, _IDENTITY, "left_anti").select(frame.columns)
        for patch in dict.fromkeys(self._patch(row) for row in apart if not self._stays_out(row)):
            rows = [row for row in apart if not self._stays_out(row) and self._patch(row) == patch]
            patched = self._again(name, schema, rows, patch)
            kept = kept.unionByName(patched.where(self._wanted(name)).select(frame.columns))
        return kept

    def judged(self, name: str, judged: DataFrame) -> None:
        """Note in `now_in` which open rows are among the fed rows of the interval; `judged` has FATE.

        Sources without a watermark are skipped: their records belong to no known interval.
        """
        mark = self.pipeline.sources[name].watermark
        start, end = self.interval.start, self.interval.end
        rows = [
            row
            for row in self._of(name)
            if row.state == "open" and (row.event_time is None or start <= row.event_time < end)
        ]
        if mark is None or not rows:
            return
        time = F.col(f"`{mark.column}`").cast("timestamp")
        fed = judged.where((F.col(FATE) == FED) & (time >= F.lit(start)) & (time < F.lit(end))).drop(FATE)
        again = self._again(name, fed.drop(*SYSTEM_COLUMNS).schema, rows, ())
        same = self._identified(fed, name).select(_IDENTITY).distinct()
        found = self._identified(again, name).join(same, _IDENTITY, "left_semi").select(KEY).collect()
        keys = {row[KEY] for row in found}
        self.now_in.extend(row for row in rows if row.key in keys)

    def _of(self, name: str) -> list[SetAside]:
        return [row for row in self.rows if row.source == name]

    def _decision(self, row: SetAside) -> QuarantineDecision | None:
        return self.decisions.get(row.decision_id or "")

    def _stays_out(self, row: SetAside) -> bool:
        """Whether the row was dropped, or comes with a batch that readers do not see yet."""
        decision = self._decision(row)
        return decision is not None and (
            decision.kind == "drop" or decision.batch_id > self.basis.batch.batch_id
        )

    def _patch(self, row: SetAside) -> tuple[str, ...]:
        decision = self._decision(row)
        return () if decision is None else tuple(decision.origin.get("set", ()))

    def _again(
        self, name: str, schema: StructType, rows: Sequence[SetAside], patch: Sequence[str]
    ) -> DataFrame:
        """The rows with the source's columns and KEY, as a quarantine replay has them."""
        storage = Storage.of(self.project)
        path = f"{self.folder}/{name}-{len(list(storage.walk(self.folder)))}.parquet"
        kept = self.session.read.parquet(storage.path(write_rows(storage, path, rows)))
        return SetAsideColumns(self.pipeline, name, schema, parse_patch(self.session, patch)).rows(kept)

    def _identified(self, frame: DataFrame, name: str) -> DataFrame:
        if self.pipeline.sources[name].format == "kafka":
            identity: list[Any] = [F.col(f"{ORIGIN}.{part}") for part in ("topic", "partition", "offset")]
        else:
            user = [named(c) for c in frame.columns if c not in (*SYSTEM_COLUMNS, KEY)]
            identity = [F.col(f"{ORIGIN}.file"), F.struct(*user).alias("row")]
        return frame.withColumn(_IDENTITY, F.to_json(F.struct(*identity), dict(EXACT_TIMES)))

    def _wanted(self, name: str) -> Column:
        """As `BoundedReading` chooses the records of a source."""
        mark, declared = self.pipeline.sources[name].watermark, replay_of(self.pipeline)
        if mark is None:
            return F.lit(True)
        wanted = self.interval.wider(declared.lookback.delta, declared.lookahead.delta)
        time = F.col(f"`{mark.column}`").cast("timestamp")
        return (time >= F.lit(wanted.start)) & (time < F.lit(wanted.end))

    def _refuse_unknown(self, name: str, rows: DataFrame, records: DataFrame) -> None:
        """Refuse if a decided record is not found: it would come in unpatched."""
        expected = rows.where(F.col(CORRUPT).isNull() & self._wanted(name)).count()
        found = records.where(F.col(CORRUPT).isNull() & self._wanted(name)).count()
        if found < expected:
            raise RefusedError(
                "replay.decided",
                f"{counted(expected - found, 'record')} of source {name} of {self.pipeline.name}, patched or"
                " dropped in the quarantine, not found in the source as it was set aside",
                where=f"pipeline {self.pipeline.name}, source {name}, {self.interval}",
                do=f"`drawdown quarantine show {self.pipeline.name} --state replayed` (or dropped) shows"
                " them: bring back their files, and the columns that the schema had",
            )
