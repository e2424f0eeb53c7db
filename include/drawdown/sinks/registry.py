"""The registry of sink kinds, one line each. The spec takes its formats, keys and checks from here."""

from __future__ import annotations

from collections.abc import Mapping

from drawdown.kinds import SinkKind, by_format

SINKS: Mapping[str, SinkKind] = by_format(
    "drawdown.sinks.delta.kind:KIND",
    "drawdown.sinks.files.kind:KIND",
    "drawdown.sinks.kafka.kind:KIND",
    "drawdown.sinks.postgres.kind:KIND",
    "drawdown.sinks.code.kind:BATCHES",
    "drawdown.sinks.code.kind:ROWS",
    "drawdown.sinks.test.kind:CONSOLE",
    "drawdown.sinks.test.kind:MEMORY",
)
"""The kind of each ``format:``."""
