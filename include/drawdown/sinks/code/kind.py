"""The user's own code as a sink: a function for each batch, or a class for each row."""

from __future__ import annotations

from drawdown.kinds import SinkKind

_KEYS = frozenset({"function"})
_REQUIRED = (("function", "function: sink.py"),)

BATCHES = SinkKind(
    formats=("foreach_batch",),
    title="A function for each batch",
    page="guarantees.md",
    stage=lambda _: "drawdown.sinks.code.stage:ForeachBatchSink",
    keys=_KEYS,
    required=_REQUIRED,
    options={"foreach_batch": frozenset()},
    no_replay="only your function knows what it wrote",
)
ROWS = SinkKind(
    formats=("foreach",),
    title="A class for each row",
    page="guarantees.md",
    stage=lambda _: "drawdown.sinks.code.stage:ForeachSink",
    keys=_KEYS,
    required=_REQUIRED,
    options={"foreach": frozenset()},
    no_replay="only your class knows what it wrote",
)
