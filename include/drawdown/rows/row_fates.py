"""The source boundary: where every row read is accounted for.

    read = malformed + too far in the future + quarantined by rules + fed to the transform

Each row gets a fate, the batch's own execution counts the fates (Dataset.observe), and only rows
with fate FED go on. Rejected rows are fetched by running the batch's source plan a second time, only if the
counts show any: a clean batch is read exactly once (docs/decisions/0002-rejected-rows-are-read-again.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from drawdown.metastore.records import Counts
from drawdown.sources.spark_system_columns import CORRUPT, ORIGIN, PAYLOAD, SYSTEM_COLUMNS, as_plain_path
from drawdown.spark.gateway import jvm_of
from drawdown.spark.named_columns import named
from drawdown.spark.texts import no_text
from drawdown.spec import Rule, Source
from drawdown.values.moments import YEARS

FATE = "_dd_fate"
FED, MALFORMED, FUTURE, RULED_OUT, DRIFTED = 0, 1, 2, 3, 4

SOURCE_PREFIX = "drawdown:source:"
OUTPUT_METRICS = "drawdown:output"
SESSIONLESS_METRICS = "drawdown:sessionless:"

REJECTED_COLUMNS: Mapping[str, DataType] = {
    "source": StringType(),
    "reasons": ArrayType(StringType()),
    "payload": StringType(),
    "event_time": TimestampType(),
    "file": StringType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "parsed": StringType(),
    "raw": BinaryType(),
    "read_as": StringType(),
}
# Spark's default formatter can read what this one writes, but itself writes only milliseconds. csv and json
# parsers decode the input: undecodable characters are replaced, but stay text.
_MAKES_TEXT = ("csv", "json", "xml")
EXACT_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True)
class Observed:
    """The counts of one batch at one source's boundary. Event times are microseconds since 1970."""

    read: int
    malformed: int
    future: int
    quarantined: int
    fed: int
    late_at_start: int
    earliest: int | None
    greatest: int | None
    sample_malformed: str | None
    by_rule: Mapping[str, int]

    warned: int = 0

    @property
    def rejected(self) -> int:
        """Return the number of rows that were not fed to the transform."""
        return self.malformed + self.future + self.quarantined

    def counts(self, late: int) -> Counts:
        """Return the counts as a batch records them."""
        return Counts(
            read=self.read,
            malformed=self.malformed,
            future=self.future,
            quarantined=self.quarantined,
            fed=self.fed,
            late=late,
            warned=self.warned,
        )

    @classmethod
    def nothing(cls, rules: Sequence[str]) -> Observed:
        """Return the counts of a batch without rows from this source."""
        return cls(0, 0, 0, 0, 0, 0, None, None, None, dict.fromkeys(rules, 0))


def fed_rows(judged: DataFrame) -> DataFrame:
    """Return the rows of a judged frame that go to the transform, with the user's columns."""
    user = [c for c in judged.columns if c not in (*SYSTEM_COLUMNS, FATE)]
    return judged.where(F.col(FATE) == FED).select(*[named(c) for c in user])


def _has_a_year(column: str) -> Column:
    """Whether a time is in the years 1 to 9999, which Python, logs and pages can hold; true for NULL."""
    at = F.col(column).cast("timestamp")
    first, last = (F.timestamp_micros(F.lit(micros)) for micros in YEARS)
    return F.coalesce((at >= first) & (at <= last), F.lit(True))


def file_path() -> Column:
    """Return the path of the file that a row comes from, in the form of `plain_path`."""
    return as_plain_path(F.col(f"{ORIGIN}.file"))


_FIXED = tuple(f.name for f in fields(Observed) if f.name not in ("by_rule", "warned"))


@dataclass(frozen=True)
class Boundary:
    """Fates and counts of one source.

    Attributes:
        max_future: event times further than this after the batch was planned are too far in the future
            (WM-10 of the conformance list).
        late_before: the watermark that judges the first batch of this run, see `late_rows`.
        aside: paths of files whose rows are all quarantined.
    """

    name: str
    source: Source
    rules: Sequence[Rule]
    max_future: timedelta | None
    late_before: datetime | None
    aside: Sequence[str] = ()

    @property
    def keeps_late(self) -> bool:
        """Whether late rows are copied to the quarantine (they are also fed)."""
        return self.source.watermark is not None and self.source.watermark.late == "keep"

    @property
    def may_end_a_run(self) -> bool:
        """Whether a row of this source can end a run (a policy is ``fail``)."""
        return self.source.malformed == "fail" or any(rule.on_fail == "fail" for rule in self.rules)

    def observe(self, frame: DataFrame) -> DataFrame:
        """Turn a source frame into the rows fed to the transform, with the user's columns."""
        user = [c for c in frame.columns if c not in SYSTEM_COLUMNS]
        return fed_rows(self.judge(frame).observe(SOURCE_PREFIX + self.name, *self._metrics(user)))

    def judge(self, frame: DataFrame) -> DataFrame:
        """Return a source frame with the fate of each row as FATE."""
        return frame.withColumn(FATE, self._fate(frame.schema))

    def observed(self, metrics: Mapping[str, Sequence[Any]]) -> Observed:
        """Return this source's counts from the metrics of the batch's execution."""
        row = list(metrics[self.name])
        names = [rule.name for rule in self.rules]
        by_rule = dict(zip(names, row[len(_FIXED) : -1], strict=True))
        return Observed(**dict(zip(_FIXED, row, strict=False)), by_rule=by_rule, warned=row[-1])

    def count(self, batch: DataFrame) -> Observed:
        """Compute the same counts in a separate query, for a batch frame of `BatchPlan.source_frame`."""
        user = [c for c in batch.columns if c not in (*SYSTEM_COLUMNS, FATE)]
        row = batch.agg(*self._metrics(user)).collect()[0]
        return self.observed({self.name: list(row)})

    def rejected(self, batch: DataFrame, watermark: datetime) -> DataFrame:
        """Return the rejected rows to keep, and late ones, with REJECTED_COLUMNS.

        Malformed rows are left out if the policy is to drop (and count) them.
        """
        keep = F.col(FATE) != FED
        if self.keeps_late:
            keep |= self.is_late(watermark)
        if self.source.malformed == "drop":
            keep &= F.col(FATE) != MALFORMED
        user = [c for c in batch.columns if c not in (*SYSTEM_COLUMNS, FATE)]
        # A file's record is assembled again from its columns; a Kafka record has its value, or none.
        columns = F.struct(*[named(c) for c in user])
        record = F.when(F.col(f"{ORIGIN}.topic").isNull(), F.to_json(columns))
        # Without a parser, even a malformed row has its columns.
        was_read = (F.col(FATE) != MALFORMED) | F.lit(not self.source.is_parsed)
        parsed = F.when(was_read, F.to_json(columns, dict(EXACT_TIMES)))
        event_time = F.col(self.source.watermark.column) if self.source.watermark else F.lit(None)
        shown = _has_a_year(self.source.watermark.column) if self.source.watermark else F.lit(False)
        came = F.coalesce(F.nullif(F.col(CORRUPT), F.lit("")), F.col(PAYLOAD), record)
        return batch.where(keep).select(
            F.lit(self.name).alias("source"),
            self._reasons().alias("reasons"),
            F.make_valid_utf8(came).alias("payload"),
            F.when(shown, event_time.cast("timestamp")).alias("event_time"),
            *[F.col(f"{ORIGIN}.{part}").alias(part) for part in ("file", "topic", "partition", "offset")],
            parsed.alias("parsed"),
            F.when(~F.is_valid_utf8(came), came.cast("binary")).alias("raw"),
            F.lit(batch.select(*[named(c) for c in user]).schema.json()).alias("read_as"),
        )

    def late_rows(self, batch: DataFrame, watermark: datetime) -> int:
        """Count the fed rows of a batch at or behind the watermark that it ran with.

        The first batch of a run needs no second read: its watermark is known before the query starts, so its
        own execution counts them (`Observed.late_at_start`).
        """
        return batch.where(F.coalesce(self.is_late(watermark), F.lit(False))).count()

    def is_late(self, watermark: datetime) -> Column:
        """Fed, and not newer than the watermark; NULL for a row without event time."""
        assert self.source.watermark is not None
        return (F.col(FATE) == FED) & (F.col(self.source.watermark.column) <= F.lit(watermark))

    def _fate(self, schema: StructType) -> Column:
        malformed = F.col(CORRUPT).isNotNull()
        if self.source.format not in _MAKES_TEXT:
            # A Kafka record's key holds arbitrary bytes; the sink decides how to select it.
            of_record = [f for f in schema.fields if f.name not in (*SYSTEM_COLUMNS, "key", "_kafka")]
            unfit = [no_text(named(f.name), f.dataType) for f in of_record]
            malformed = reduce(Column.__or__, unfit, malformed)
        fate = F.when(self._is_aside(), DRIFTED).when(malformed, MALFORMED)
        if self.max_future is not None and self.source.watermark is not None:
            # In a stream this is the time in the offset log, so that a replay decides like the first attempt.
            limit = F.current_timestamp() + F.lit(self.max_future)
            fate = fate.when(F.col(self.source.watermark.column) > limit, FUTURE)
        if self.source.watermark is not None:
            fate = fate.when(~_has_a_year(self.source.watermark.column), MALFORMED)
        stopping = [r for r in self.rules if r.on_fail != "warn"]
        if stopping:
            fate = fate.when(reduce(Column.__or__, [_broken(r) for r in stopping]), RULED_OUT)
        return fate.otherwise(FED)

    def _is_aside(self) -> Column:
        if not self.aside:
            return F.lit(False)
        return file_path().isin(list(self.aside))

    def _reasons(self) -> Column:
        broken = [F.when(_broken(r), F.lit(r.name)) for r in self.rules if r.on_fail != "warn"]
        by_rule = F.array_compact(F.array(*broken)) if broken else F.array().cast("array<string>")
        return (
            F.when(F.col(FATE) == MALFORMED, F.array(F.lit("malformed")))
            .when(F.col(FATE) == FUTURE, F.array(F.lit("future")))
            .when(F.col(FATE) == DRIFTED, F.array(F.lit("drift")))
            .when(F.col(FATE) == FED, F.array(F.lit("late")))
            .otherwise(by_rule)
        )

    def _metrics(self, user: Sequence[str]) -> list[Column]:
        """Return the metrics in the order of `Observed`'s fields, with one count per rule for `by_rule`."""
        fed = F.col(FATE) == FED
        if self.source.watermark is not None:
            micros = F.unix_micros(F.col(self.source.watermark.column).cast("timestamp"))
            event_time = F.when(fed, micros)
        else:
            event_time = F.lit(None).cast("bigint")
        late = F.lit(False)
        if self.late_before is not None and self.source.watermark is not None:
            late = fed & (F.col(self.source.watermark.column) <= F.lit(self.late_before))
        # The sample names every column on purpose. Otherwise Spark prunes columns that the transform does not
        # use, and a record broken only there would pass here but fail in the second read.
        record = F.to_json(F.struct(CORRUPT, *[named(c) for c in user]))
        return [
            F.count(F.lit(1)).alias("read"),
            *[
                F.count_if(F.col(FATE).isin(*fates)).alias(name)
                for fates, name in [
                    ((MALFORMED,), "malformed"),
                    ((FUTURE,), "future"),
                    ((RULED_OUT, DRIFTED), "quarantined"),
                    ((FED,), "fed"),
                ]
            ],
            F.count_if(late).alias("late"),
            F.min(event_time).alias("earliest"),
            F.max(event_time).alias("greatest"),
            F.max(F.when(F.col(FATE) == MALFORMED, record)).alias("sample"),
            *[F.count_if(self._counts_for(rule)).alias(f"rule_{i}") for i, rule in enumerate(self.rules)],
            F.count_if(self._warned()).alias("warned"),
        ]

    def _warned(self) -> Column:
        """Fed rows that break at least one rule whose only consequence is a warning."""
        warning = [_broken(rule) for rule in self.rules if rule.on_fail == "warn"]
        return (F.col(FATE) == FED) & reduce(Column.__or__, warning, F.lit(False))

    def _counts_for(self, rule: Rule) -> Column:
        """Count a rule only on rows that it could decide about."""
        fate = FED if rule.on_fail == "warn" else RULED_OUT
        return (F.col(FATE) == fate) & _broken(rule)


def _broken(rule: Rule) -> Column:
    """True where a rule is broken; NULL counts as broken."""
    return ~F.coalesce(F.expr(rule.check).cast("boolean"), F.lit(False))


class BatchPlan:
    """An executed micro-batch, seen inside foreachBatch before Spark commits it.

    Source of the facts: StreamExecution.lastExecution is set before the sink is called, and its
    analysed plan holds, under each CollectMetrics node, the batch's own source with fixed offsets
    (MicroBatchExecution.runBatch, Spark 4.2).
    """

    def __init__(self, java_execution: Any, reading: SparkSession) -> None:
        self._execution = java_execution
        self._reading = reading

    def metrics(self) -> dict[str, list[Any]]:
        """Return observed values by source name; valid once an action has run the whole batch."""
        return {
            name.removeprefix(SOURCE_PREFIX): values
            for name, values in self._collected().items()
            if name.startswith(SOURCE_PREFIX)
        }

    def output_rows(self) -> int | None:
        """Return the number of output rows if the query observes them (file sinks), else None."""
        values = self._collected().get(OUTPUT_METRICS)
        return None if values is None else int(values[0])

    def sessionless(self) -> int:
        """Return the number of rows that computed gaps left without a session (rows_without_window.py)."""
        collected = self._collected()
        return sum(int(collected[name][0]) for name in collected if name.startswith(SESSIONLESS_METRICS))

    def _collected(self) -> dict[str, list[Any]]:
        collected = self._execution.observedMetrics()
        names = collected.keys().mkString("\n").splitlines()
        rows = {name: collected.apply(name) for name in names}
        return {name: [row.get(i) for i in range(row.length())] for name, row in rows.items()}

    def source_frame(self, name: str) -> DataFrame:
        """Return the batch's rows at a source's boundary, with FATE, as a batch frame that can be read
        again."""
        node = find_boundary(self._execution.analyzed(), name)
        assert node is not None  # query/query.py refuses a plan that does not use a source
        return frame_of(self._reading, node.child())


def frame_of(session: SparkSession, plan: Any) -> DataFrame:
    """Return a Java logical plan as a DataFrame of a session."""
    jvm = jvm_of(session)
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan), session)


def find_boundary(plan: Any, name: str) -> Any | None:
    """Return the CollectMetrics node of a source in a Java logical plan, or None.

    If a transform uses the source twice, return the last node: Spark keeps its counts
    (CollectMetricsExec.collect).
    """
    if boundary_name(plan) == name:
        return plan
    children = plan.children()
    for i in reversed(range(children.size())):
        found = find_boundary(children.apply(i), name)
        if found is not None:
            return found
    return None


def boundary_name(plan: Any) -> str | None:
    """Return the source whose boundary this Java plan node is, or None."""
    if plan.nodeName() != "CollectMetrics":
        return None
    name: str = plan.name()
    return name.removeprefix(SOURCE_PREFIX) if name.startswith(SOURCE_PREFIX) else None
