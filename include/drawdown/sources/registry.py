"""The registry of source kinds, one line each. The spec takes its formats, keys and checks from here."""

from __future__ import annotations

from collections.abc import Mapping

from drawdown.kinds import SourceKind, by_format

SOURCES: Mapping[str, SourceKind] = by_format(
    "drawdown.sources.files.kind:KIND",
    "drawdown.sources.delta.kind:KIND",
    "drawdown.sources.kafka.kind:KIND",
    "drawdown.sources.python.kind:KIND",
    "drawdown.sources.test.kind:KIND",
)
"""The kind of each ``format:``."""
