"""Reads a pipeline's state from its checkpoint with Spark's own data sources; writes nothing.

Spark's ``state-metadata`` lists the stores of every stateful operator, ``statestore`` reads the rows of one
(Spark 4.2, StateMetadataSource and StateDataSource). The first run's settings are read from the checkpoint,
so any session works.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from drawdown.checkpoint import plain_path
from drawdown.errors import RefusedError, SourceError, SpecError
from drawdown.layout import home_of
from drawdown.recovery.repair.advice import refuse_torn
from drawdown.spark.sentences import root_sentence
from drawdown.storage import Storage
from drawdown.values.nearest import did_you_mean
from drawdown.workspace import Generation

_DEFAULT = "default"
_JOIN_SIDES = ("left", "right")
_TIMERS = "timers"
_TIMER_STATE = "TimerState"


@dataclass(frozen=True)
class StateStore:
    """One store of a stateful operator.

    Attributes:
        operator: number of the operator in the query, as in the checkpoint's ``state/<operator>``.
        name: of the operator, as Spark's progress names it.
        store: ``default``; of a join ``left-keyToNumValues``, ``left-keyWithIndexToValue`` and the same of
            the right; of transformWithState the names of its state variables, and ``timers``.
        partitions: the number that the first run fixed.
        first_batch, last_batch: between which batches Spark's operator metadata says it can be read.
        keys: rows in it; None when it could not be counted.
        bytes: of the operator's files on storage, all versions that are kept; stores of one operator may
            share them.
    """

    operator: int
    name: str
    store: str
    partitions: int
    first_batch: int
    last_batch: int
    keys: int | None
    bytes: int
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class StateReader:
    """Reads the state of one checkpoint.

    Args:
        path: of the checkpoint, relative to the storage root.
        batch: a batch id whose state is read; None for the newest committed.
    """

    session: SparkSession
    storage: Storage
    path: str
    batch: int | None = None

    def metadata(self) -> list[dict[str, Any]]:
        """The rows of Spark's ``state-metadata``; empty for a query without state.

        operatorId INT, operatorName STRING, stateStoreName STRING, numPartitions INT, minBatchId BIGINT,
        maxBatchId BIGINT, operatorProperties STRING (JSON).
        """
        return self._listed

    @cached_property
    def _listed(self) -> list[dict[str, Any]]:
        if not self.storage.exists(f"{self.path}/state"):
            return []
        frame = self._load("state-metadata", {"path": self._location})
        return self._rows(frame.orderBy("operatorId", "stateStoreName"))

    def stores(self) -> list[StateStore]:
        """Every store with its number of keys."""
        return [store for row in self.metadata() for store in self._stores_of(row, count=True)]

    def read(self, operator: int, store: str | None, key: str | None, limit: int) -> list[dict[str, Any]]:
        """At most ``limit`` rows of a store: partition_id, key, value; lists and maps have more columns.

        Args:
            store: as `StateStore.store`, or ``left`` or ``right`` for the rows of one side of a join; None
                for the only one, or the left side of a join.
            key: a JSON object with the fields of the key, or some of them.

        Raises:
            SpecError: ``state.no-operator``, ``state.no-store``, ``state.no-key``.
        """
        frame = self._frame(operator, store)
        if key is not None:
            frame = frame.where(_matches(frame, key))
        return self._rows(frame.limit(limit))

    def _frame(self, operator: int, store: str | None) -> DataFrame:
        rows = [row for row in self.metadata() if row["operatorId"] == operator]
        if not rows:
            there = sorted({f"{row['operatorId']} ({row['operatorName']})" for row in self.metadata()})
            raise SpecError(
                "state.no-operator",
                f"there is no stateful operator {operator}",
                where=self.storage.path(self.path),
                do=f"the stateful operators are {', '.join(there)}" if there else "this query keeps no state",
            )
        stores = {each.store: each for row in rows for each in self._stores_of(row, count=False)}
        joins = rows[0]["operatorName"] == "symmetricHashJoin"
        wanted = store or ("left" if joins else next(iter(stores)))
        if joins and wanted in _JOIN_SIDES:
            return self._statestore(operator, {"joinSide": wanted})
        if wanted not in stores:
            known = [*stores, *(_JOIN_SIDES if joins else ())]
            raise SpecError(
                "state.no-store",
                f"operator {operator} ({rows[0]['operatorName']}) has no store {wanted}; "
                + did_you_mean(wanted, known),
                where=self.storage.path(self.path),
                do=f"its stores are {', '.join(known)}",
            )
        return self._statestore(operator, stores[wanted].options)

    def _stores_of(self, row: Mapping[str, Any], *, count: bool) -> Iterator[StateStore]:
        operator = int(row["operatorId"])
        size = sum(info.size for info in self.storage.walk(f"{self.path}/state/{operator}"))
        for name, options in _readable(row):
            yield StateStore(
                operator,
                row["operatorName"],
                name,
                int(row["numPartitions"]),
                int(row["minBatchId"]),
                int(row["maxBatchId"]),
                self._count(operator, options) if count else None,
                size,
                options,
            )

    def _count(self, operator: int, options: Mapping[str, str]) -> int:
        with_errors = self._statestore(operator, options)
        return int(self._rows(with_errors.agg(F.count(F.lit(1)).alias("n")))[0]["n"])

    def _statestore(self, operator: int, options: Mapping[str, str]) -> DataFrame:
        at = {} if self.batch is None else {"batchId": str(self.batch)}
        path = {"path": self._location, "operatorId": str(operator)}
        return self._load("statestore", {**path, **at, **options})

    @cached_property
    def _location(self) -> str:
        """The checkpoint as Spark's sources of state find it.

        They escape the path and then use it literally, so paths with a space are not found (seen with Spark
        4.2): these checkpoints are read through a link.
        """
        path = plain_path(self.storage.path(self.path))
        if not self.storage.is_local or quote(path) == path:
            return path
        link = Path(self._links.name) / "checkpoint"
        link.symlink_to(path)
        return str(link)

    @cached_property
    def _links(self) -> TemporaryDirectory[str]:
        return TemporaryDirectory(prefix="drawdown-state-")

    def _load(self, format: str, options: Mapping[str, str]) -> DataFrame:
        # Stores report to a coordinator, which starts when an application first accesses its queries.
        _ = self.session.streams
        try:
            return self.session.read.format(format).options(**options).load()
        except (PySparkException, Py4JJavaError) as cause:
            raise self._unreadable(cause) from None

    def _rows(self, frame: DataFrame) -> list[dict[str, Any]]:
        try:
            # Whole rows: an expression over a join's values, such as to_json(struct(*)), ended with an index
            # out of bounds (seen with Spark 4.2).
            return [row.asDict(recursive=True) for row in frame.collect()]
        except (PySparkException, Py4JJavaError) as cause:
            raise self._unreadable(cause) from None

    def _unreadable(self, cause: Exception) -> SourceError:
        return SourceError(
            "state.unreadable",
            f"Spark could not read the state: {root_sentence(cause)}",
            where=self.storage.path(self.path),
            do="name a batch that is kept (`--metadata` lists them); while a drain runs, try again after it",
        )


def refuse_without_state(generation: Generation, batch: int | None) -> None:
    """Refuse if the checkpoint, or the batch in it, is missing or damaged.

    Raises:
        RefusedError: ``state.no-checkpoint``: no run has committed a batch; ``state.no-batch``: this batch is
            not kept; ``checkpoint.torn`` as `refuse_torn`.
    """
    refuse_torn(generation)
    pipeline, storage, files = generation.pipeline.name, generation.storage, generation.files
    kept = files.commit_batches()
    if not kept:
        raise RefusedError(
            "state.no-checkpoint",
            f"{pipeline} has no checkpoint with a committed batch, so there is no state to read",
            where=storage.path(home_of(pipeline)),
            do=f"`drawdown run {pipeline}` creates one",
        )
    if batch is None:
        return
    if batch not in kept:
        raise RefusedError(
            "state.no-batch",
            f"batch {batch} is not among the committed batches that the checkpoint keeps",
            where=storage.path(generation.path),
            do=f"name one from {kept[0]} to {kept[-1]}; raise spark.sql.streaming.minBatchesToRetain to"
            " keep more",
        )
    files.offsets(batch)


def _readable(row: Mapping[str, Any]) -> Sequence[tuple[str, Mapping[str, str]]]:
    """Names of the stores behind one metadata row, and the options of the data source that read them."""
    variables = json.loads(row.get("operatorProperties") or "{}").get("stateVariables", ())
    if variables:
        named = [
            (str(v["stateName"]), {"stateVarName": str(v["stateName"]), "flattenCollectionTypes": "true"})
            for v in variables
            if v["stateVariableType"] != _TIMER_STATE
        ]
        timers = any(v["stateVariableType"] == _TIMER_STATE for v in variables)
        return [*sorted(named), *([(_TIMERS, {"readRegisteredTimers": "true"})] if timers else [])]
    store = str(row["stateStoreName"])
    return [(store, {} if store == _DEFAULT else {"storeName": store})]


def _matches(frame: DataFrame, key: str) -> Column:
    """Whether a row's key has the fields of a JSON object."""
    if "key" not in frame.columns:
        raise SpecError("state.no-key", "the rows of this store have no key", do="leave out --key")
    try:
        given = json.loads(key)
    except ValueError:
        given = None
    kind = frame.schema["key"].dataType
    assert isinstance(kind, StructType)
    example = json.dumps(dict.fromkeys(kind.fieldNames(), "..."))
    if not isinstance(given, dict) or not given:
        raise SpecError(
            "state.no-key", f"--key is not a JSON object: {key[:100]}", do=f"write it as {example}"
        )
    parsed = F.from_json(F.lit(json.dumps(given)), kind)
    return reduce(Column.__and__, _same(F.col("key"), parsed, kind, given, example))


def _same(
    column: Column, wanted: Column, kind: StructType, given: Mapping[str, Any], example: str
) -> Iterator[Column]:
    for name, value in given.items():
        if name not in kind.fieldNames():
            said = did_you_mean(name, kind.fieldNames())
            raise SpecError(
                "state.no-key", f"the key has no field {name}; {said}", do=f"write it as {example}"
            )
        of = kind[name].dataType
        if isinstance(of, StructType) and isinstance(value, dict):
            yield from _same(column[name], wanted[name], of, value, example)
        else:
            yield column[name].eqNullSafe(wanted[name])
