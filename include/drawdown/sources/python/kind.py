"""A user's Python data source as a source; it defines its own options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drawdown.kinds import SourceKind
from drawdown.values.model import problem

if TYPE_CHECKING:
    from drawdown.spec import Source


def _check(source: Source) -> None:
    if source.reader is None:
        raise problem("missing-key", "a python source needs a reader", do="add `reader: clock.py`")


KIND = SourceKind(
    formats=("python",),
    title="Readers in Python",
    page="files.md#readers-in-python",
    reader="drawdown.sources.python.reader:read_python",
    keys=frozenset({"reader"}),
    options=lambda _: None,
    check=_check,
)
