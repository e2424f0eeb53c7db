"""Spark's own sources for tests and benchmarks: socket, rate, rate-micro-batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drawdown.kinds import SourceKind, refuse_static
from drawdown.values.model import problem

if TYPE_CHECKING:
    from drawdown.spec import Source

_MADE_UP = "Spark makes its rows up, for tests and benchmarks: there is nothing for a schedule to drain"
_OPTIONS: dict[str, frozenset[str]] = {
    "socket": frozenset({"host", "port", "includeTimestamp"}),
    "rate": frozenset({"rowsPerSecond", "rampUpTime", "numPartitions"}),
    "rate-micro-batch": frozenset(
        {"rowsPerBatch", "numPartitions", "startTimestamp", "advanceMillisPerBatch"}
    ),
}
# Without these Spark does not start the source.
_REQUIRED = {"socket": ("host", "port"), "rate-micro-batch": ("rowsPerBatch",)}


def _options(source: Source) -> frozenset[str]:
    return _OPTIONS[source.format]


def _check(source: Source) -> None:
    refuse_static(source)
    if source.schema_text is not None:
        raise problem("no-effect", "Spark says what its columns are", "schema", do="remove the key")
    for name in _REQUIRED.get(source.format, ()):
        if name not in source.options:
            raise problem(
                "missing-key",
                f"a {source.format} source needs {name}",
                "options",
                do=f"add it: `options: {{{name}: ...}}`",
            )


KIND = SourceKind(
    formats=tuple(_OPTIONS),
    reader="drawdown.sources.test.reader:read_generated",
    options=_options,
    check=_check,
    test_only={
        "socket": "what a socket gave before a failure cannot be read again: Spark has it for tests",
        "rate": _MADE_UP,
        "rate-micro-batch": _MADE_UP,
    },
)
