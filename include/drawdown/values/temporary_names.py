"""Names of files that are still being written: no source reads them, unless its pathGlobFilter says so.

Spark itself skips names that begin with ``.`` or ``_`` and those that end in ``._COPYING_``; the endings here
it would read.
"""

from __future__ import annotations

from collections.abc import Sequence

ENDINGS = (".tmp", ".temp", ".part", ".partial", ".filepart", ".crdownload", ".inprogress", "~")
"""What writers, browsers and transfer programs append until a file is whole."""


def names_not_ending_in(endings: Sequence[str]) -> str:
    """A Hadoop glob for every name but those with one of these endings; it has no "not", only ``[!x]``.

    For each tail that some ending goes on from: names with that tail before which something else stands, and
    the tail alone.
    """
    tails = sorted({ending[at:] for ending in endings for at in range(1, len(ending) + 1)} | {""}, key=len)
    choices = []
    for tail in tails:
        if not tail.endswith(tuple(endings)):
            before = "".join(sorted({end[-len(tail) - 1] for end in endings if end.endswith(tail)}))
            choices += [f"*[!{before}]{tail}", *([tail] if tail else [])]
    return f"{{{','.join(choices)}}}"


FINISHED_NAMES = names_not_ending_in(ENDINGS)
"""The pathGlobFilter of a source that gives none."""
