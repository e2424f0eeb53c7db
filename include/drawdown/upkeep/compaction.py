"""Compaction: merges many small files of a Delta table in one commit that changes no row.

The commit says ``dataChange: false``: a stream over the table does not read the rows again. The small files
stay where they are until `vacuum`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from drawdown.delta.table import DeltaTableFiles
from drawdown.fault_points import durable
from drawdown.metastore.records import Change

_SMALL = 16 * 2**20
"""In bytes; smaller files count as small."""
_MANY = 8
"""The number of small files in one partition that justifies a commit."""


@dataclass(frozen=True)
class Compacted:
    """Number of files before and after; `after` is 0 if not compacted."""

    before: int = 0
    after: int = 0


def compact(
    table: DeltaTableFiles,
    begin: Callable[[int], Change],
    once: Callable[[Change], tuple[int, int]],
    *,
    dry: bool,
) -> Compacted:
    """Compact the table if it is worth a commit; the caller holds the leases of drains and of replays'
    commits.

    Args:
        begin: begins the change in the register, given the table's version.
        once: makes the commit; the number of files before and after it.

    Raises:
        SourceError: ``sink.unreadable``, ``sink.unwritable``; the call can be repeated.
    """
    small = Counter(partition for partition, size in table.sizes() if size < _SMALL)
    worth = sum(count for count in small.values() if count >= _MANY)
    if not worth or dry:
        return Compacted(worth)
    with durable("upkeep.compact"):
        before, after = once(begin(table.version))
    return Compacted(before, after)
