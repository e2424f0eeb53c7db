"""Names of files that are still being written: no source reads them, unless its pathGlobFilter says so.

Spark itself skips names that begin with ``.`` or ``_`` or end in ``._COPYING_``; it would read those with the
endings here.
"""

from __future__ import annotations

from collections.abc import Sequence

ENDINGS = (".tmp", ".temp", ".part", ".partial", ".filepart", ".crdownload", ".inprogress", "~")
"""Endings that writers, browsers and transfer programs use until a file is complete."""


def names_not_ending_in(endings: Sequence[str]) -> str:
    """Return a Hadoop glob for all names without these endings; globs have no "not", only ``[!x]``.

    For each tail of an ending it lists the names where a different character precedes that tail, and the tail
    alone.
    """
    tails = sorted({ending[at:] for ending in endings for at in range(1, len(ending) + 1)} | {""}, key=len)
    choices = []
    for tail in tails:
        if not tail.endswith(tuple(endings)):
            before = "".join(sorted({end[-len(tail) - 1] for end in endings if end.endswith(tail)}))
            choices += [f"*[!{before}]{tail}", *([tail] if tail else [])]
    return f"{{{','.join(choices)}}}"


FINISHED_NAMES = names_not_ending_in(ENDINGS)
"""The default pathGlobFilter of a source."""
