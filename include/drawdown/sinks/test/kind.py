"""Sinks for development and tests: console and memory."""

from __future__ import annotations

from drawdown.kinds import SinkKind
from drawdown.values.option_types import FLAG, WHOLE

CONSOLE = SinkKind(
    formats=("console",),
    title="Console",
    page="watch.md",
    stage=lambda _: "drawdown.sinks.test.stage_console:ConsoleSink",
    options={"console": WHOLE.of("numRows") | FLAG.of("truncate")},
    no_replay="printed rows cannot be undone",
    test_only="the console sink prints rows and keeps none of them",
)
MEMORY = SinkKind(
    formats=("memory",),
    title="Memory",
    page="watch.md",
    stage=lambda _: "drawdown.sinks.test.stage_memory:MemorySink",
    options={"memory": frozenset()},
    modes=(("append", "complete"), "a table in memory has no keys to update rows by"),
    no_replay="its rows disappear with the run that wrote them",
    test_only="the memory sink keeps its rows in the driver, and they disappear with it",
)
