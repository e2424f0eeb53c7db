"""Applies decisions about quarantined rows to the replay of an interval, which reads their records again.

Decisions stay valid: a dropped record stays out, one that waits for a batch after the basis comes with that
batch, and one that was replayed is in, as it was patched, even if its file is gone. All others are judged
like any record; open ones that now pass are part of the interval once the replay commits, and no longer open.
A Kafka record is identified by its offset, a file's record by the file, as it lies below its source, and by
the columns that it was read with when it was set aside.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from drawdown.checkpoint import plain_path
from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import RefusedError
from drawdown.metastore.records import QuarantineDecision
from drawdown.quarantine.row_states import DRIFT, LATE, MALFORMED, SetAside, set_aside, write_rows
from drawdown.quarantine.spark_restored_columns import KEY, SetAsideColumns, parse_patch
from drawdown.replay.publish import decided_rows
from drawdown.rows.row_fates import EXACT_TIMES, FATE, FED, file_path
from drawdown.sinks.locations import quarantine_uri
from drawdown.sources.replay_basis import ReplayBasis, replay_of
from drawdown.sources.spark_system_columns import ARRIVED, CORRUPT, ORIGIN, SYSTEM_COLUMNS
from drawdown.spark.named_columns import named
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage
from drawdown.values.interval import Interval
from drawdown.values.paths import fixed_part
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
    undated: bool
    now_in: list[SetAside] = field(default_factory=list)

    @classmethod
    def read(
        cls,
        session: SparkSession,
        generation: Generation,
        basis: ReplayBasis,
        interval: Interval,
        folder: str,
        undated: bool,
    ) -> DecidedRows:
        """Read both as they are now.

        Args:
            generation: the one that the replay's basis belongs to.
            undated: as in `BoundedReading`.

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
        return cls(session, workspace.project, pipeline, basis, interval, decisions, known, folder, undated)

    def obeyed(self, name: str, frame: DataFrame) -> DataFrame:
        """Apply the decisions to a frame of `BoundedReading`, and add ARRIVED.

        A record that was replayed comes from the quarantine, also when its file is gone. A record that was
        replayed unchanged, and that its file no longer holds, was changed by hand: it is judged as it is now.

        Raises:
            RefusedError: ``replay.decided``: patched or dropped records are not found in the source.
        """
        frame = self._without_drifted(name, frame).withColumn(ARRIVED, F.lit(None).cast("bigint"))
        decided = [row for row in self._of(name) if row.state not in ("open", "fed")]
        if not decided:
            return frame
        there = {self._place(name, plain_path(file)) for file in frame.inputFiles()}
        kept, found = self._split(name, frame, decided)
        lost = [row for row in decided if row.key not in found and not self._is_gone(row, there)]
        self._refuse_unknown(name, [row for row in lost if self._stays_out(row) or self._patch(row)])
        # A patch may have moved a record here from another time.
        changed = {row.key for row in lost if not self._patch(row)}
        schema = frame.drop(*SYSTEM_COLUMNS).schema
        back = [row for row in decided if not self._stays_out(row) and row.key not in changed]
        for patch, batch in dict.fromkeys((self._patch(row), self._batch(row)) for row in back):
            rows = [row for row in back if (self._patch(row), self._batch(row)) == (patch, batch)]
            again = self._again(name, schema, rows, patch).withColumn(ARRIVED, F.lit(batch).cast("bigint"))
            kept = kept.unionByName(again.where(self._wanted(name)).select(frame.columns))
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
        _, found = self._split(name, fed, rows)
        self.now_in.extend(row for row in rows if row.key in found)

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

    def _batch(self, row: SetAside) -> int | None:
        """Return the batch with which a row came; None for one that came with a replay of its interval."""
        decision = self._decision(row)
        return None if decision is None else decision.batch_id

    def _without_drifted(self, name: str, frame: DataFrame) -> DataFrame:
        """Leave out files whose rows wait because of their columns, unless the schema was changed since."""
        if self.pipeline.sources[name].policy.drift != "quarantine":
            return frame
        now = frame.drop(*SYSTEM_COLUMNS).schema.json()
        drifted = {
            self._place(name, plain_path(row.file))
            for row in self._of(name)
            if row.file and row.state == "open" and DRIFT in row.reasons and row.read_as in (None, now)
        }
        return frame.where(~self._placed(name).isin(sorted(drifted))) if drifted else frame

    def _split(self, name: str, frame: DataFrame, rows: Sequence[SetAside]) -> tuple[DataFrame, set[str]]:
        """Return the frame without the records of these rows, and the keys of the rows that it has."""
        schema = frame.drop(*SYSTEM_COLUMNS).schema
        kept, keys = frame, set[str]()
        for read_as in dict.fromkeys(row.read_as for row in rows):
            alike = [row for row in rows if row.read_as == read_as]
            common = _common(schema, read_as)
            again = self._identified(self._again(name, schema, alike, ()), name, common)
            records = self._identified(kept, name, common)
            same = records.select(_IDENTITY).distinct()
            found = again.where(F.col(CORRUPT).isNull()).join(same, _IDENTITY, "left_semi")
            keys |= {row[KEY] for row in found.select(KEY).collect()}
            ids = F.broadcast(again.select(_IDENTITY).distinct())
            kept = records.join(ids, _IDENTITY, "left_anti").select(frame.columns)
        return kept, keys

    def _again(
        self, name: str, schema: StructType, rows: Sequence[SetAside], patch: Sequence[str]
    ) -> DataFrame:
        """The rows with the source's columns and KEY, as a quarantine replay has them."""
        storage = Storage.of(self.project)
        path = f"{self.folder}/{name}-{len(list(storage.walk(self.folder)))}.parquet"
        kept = self.session.read.parquet(storage.path(write_rows(storage, path, rows)))
        return SetAsideColumns(self.pipeline, name, schema, parse_patch(self.session, patch)).rows(kept)

    def _identified(self, frame: DataFrame, name: str, common: StructType | None) -> DataFrame:
        """Add what tells a record from others, as it was when it was set aside.

        Args:
            common: the columns that it had then and has now; None: all.
        """
        if self.pipeline.sources[name].format == "kafka":
            identity: list[Any] = [F.col(f"{ORIGIN}.{part}") for part in ("topic", "partition", "offset")]
        else:
            row = F.struct(*[named(c) for c in frame.columns if c not in (*SYSTEM_COLUMNS, KEY)])
            if common is not None:
                row = F.from_json(F.to_json(row, dict(EXACT_TIMES)), common, dict(EXACT_TIMES))
            identity = [self._placed(name), row.alias("row")]
        return frame.withColumn(_IDENTITY, F.to_json(F.struct(*identity), dict(EXACT_TIMES)))

    def _place(self, name: str, path: str) -> str:
        """Return a file's path from its source's folder on: the storage may have been moved since."""
        at = path.find(self._marker(name))
        return path[at:] if at >= 0 else path

    def _placed(self, name: str) -> Column:
        """Return `_place` of the file that a row comes from."""
        path = file_path()
        at = F.instr(path, self._marker(name))
        return F.when(at > 0, F.substr(path, at)).otherwise(path)

    def _marker(self, name: str) -> str:
        return f"/{fixed_part(self.pipeline.sources[name].path or '').strip('/')}/"

    def _is_gone(self, row: SetAside, there: set[str]) -> bool:
        """Whether its record cannot be in the source any more, and so cannot come in by mistake."""
        if self.pipeline.sources[row.source].format == "kafka":
            return True
        return row.file is not None and self._place(row.source, plain_path(row.file)) not in there

    def _wanted(self, name: str) -> Column:
        """As `BoundedReading` chooses the records of a source."""
        mark, declared = self.pipeline.sources[name].watermark, replay_of(self.pipeline)
        if mark is None:
            return F.lit(True)
        wanted = self.interval.wider(declared.lookback.delta, declared.lookahead.delta)
        time = F.col(f"`{mark.column}`").cast("timestamp")
        within = (time >= F.lit(wanted.start)) & (time < F.lit(wanted.end))
        return within | (time.isNull() & F.col(CORRUPT).isNull()) if self.undated else within

    def _refuse_unknown(self, name: str, rows: Sequence[SetAside]) -> None:
        """Refuse if a decided record is not found: it would come in as it was not decided."""
        wanted = [row for row in rows if MALFORMED not in row.reasons and self._is_near(row)]
        if wanted:
            raise RefusedError(
                "replay.decided",
                f"{counted(len(wanted), 'record')} of source {name} of {self.pipeline.name}, patched or"
                " dropped in the quarantine, not found in the source as it was set aside",
                where=f"pipeline {self.pipeline.name}, source {name}, {self.interval}",
                do=f"`drawdown quarantine show {self.pipeline.name} --state replayed` (or dropped) shows"
                " them: bring back their files, and the columns that the schema had",
            )

    def _is_near(self, row: SetAside) -> bool:
        """Whether the replay reads records of its time, as `_wanted`."""
        if self.pipeline.sources[row.source].watermark is None:
            return True
        if row.event_time is None:
            return self.undated
        declared = replay_of(self.pipeline)
        wanted = self.interval.wider(declared.lookback.delta, declared.lookahead.delta)
        return wanted.start <= row.event_time < wanted.end


def _common(now: StructType, read_as: str | None) -> StructType | None:
    """Return the columns of then that are there now; None if all are the same, or then is unknown."""
    if read_as is None or read_as == now.json():
        return None
    names = {name.lower() for name in now.names}
    then = StructType.fromJson(json.loads(read_as))
    return StructType([field for field in then.fields if field.name.lower() in names])
