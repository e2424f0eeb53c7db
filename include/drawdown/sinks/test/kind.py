"""Sinks for a developer's eyes and for tests: console and memory."""

from __future__ import annotations

from drawdown.kinds import SinkKind

CONSOLE = SinkKind(
    formats=("console",),
    stage=lambda _: "drawdown.sinks.test.stage_console:ConsoleSink",
    options={"console": frozenset({"numRows", "truncate"})},
    no_replay="what is printed cannot be taken back",
    test_only="the console sink prints rows and keeps none of them",
)
MEMORY = SinkKind(
    formats=("memory",),
    stage=lambda _: "drawdown.sinks.test.stage_memory:MemorySink",
    options={"memory": frozenset()},
    modes=(("append", "complete"), "a table in memory has no keys to update rows by"),
    no_replay="its rows are gone with the run that wrote them",
    test_only="the memory sink keeps its rows in the driver, and they are gone with it",
)
