"""Delta tables as a sink."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from drawdown.kinds import Keeps, SinkKind
from drawdown.values.model import problem
from drawdown.values.option_types import FLAG

if TYPE_CHECKING:
    from drawdown.spec import Sink

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


def _stage(sink: Sink) -> str:
    if sink.mode == "update":
        return "drawdown.sinks.delta.stage_upsert:DeltaUpsertSink"
    return "drawdown.sinks.delta.stage:DeltaSink.output"


def _check(sink: Sink) -> None:
    if sink.table is not None and not _NAME.fullmatch(sink.table):
        raise problem(
            "wrong-value", "must be a name of small letters, digits and _", "table", do="correct the name"
        )


KIND = SinkKind(
    formats=("delta",),
    title="Delta tables",
    page="guarantees.md",
    stage=_stage,
    target=lambda _: "drawdown.sinks.delta.publish:output_target",
    staging=lambda mode, _: "apart" if mode == "update" else "in place",
    keys=frozenset({"path", "partition_by", "time_column", "keys", "table"}),
    required=(("path", "path: tables/x"), ("schema", "schema: schemas/x.ddl")),
    options={"delta": FLAG.of("delta.enableChangeDataFeed")},
    check=_check,
    keeps=Keeps(empty_partitions=False),
    readable=True,
    out_of_order=True,
    no_replay=None,
)
