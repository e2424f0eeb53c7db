"""Spark's own sources for tests and benchmarks: socket, rate, rate-micro-batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from drawdown.kinds import SourceKind
from drawdown.values.model import problem
from drawdown.values.option_types import COUNT, DURATION, FLAG, TEXT, WHOLE, OptionType

if TYPE_CHECKING:
    from drawdown.spec import Source

_MADE_UP = "Spark generates its rows for tests and benchmarks: a schedule has nothing to drain"
_OPTIONS: Mapping[str, Mapping[str, OptionType]] = {
    "socket": TEXT.of("host") | WHOLE.of("port") | FLAG.of("includeTimestamp"),
    "rate": COUNT.of("rowsPerSecond", "numPartitions") | DURATION.of("rampUpTime"),
    "rate-micro-batch": COUNT.of("rowsPerBatch", "numPartitions")
    | WHOLE.of("startTimestamp", "advanceMillisPerBatch"),
}
# Without these Spark does not start the source.
_REQUIRED = {"socket": ("host", "port"), "rate-micro-batch": ("rowsPerBatch",)}


def _options(source: Source) -> Mapping[str, OptionType]:
    return _OPTIONS[source.format]


def _check(source: Source) -> None:
    if source.schema_text is not None:
        raise problem("no-effect", "Spark defines its columns", "schema", do="remove the key")
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
    title="Sources for tests",
    page="files.md#sources-for-tests",
    reader="drawdown.sources.test.reader:read_generated",
    columns=dict.fromkeys(("rate", "rate-micro-batch"), "timestamp TIMESTAMP, value BIGINT"),
    options=_options,
    check=_check,
    test_only={
        "socket": "rows from a socket cannot be read again after a failure: it is for tests only",
        "rate": _MADE_UP,
        "rate-micro-batch": _MADE_UP,
    },
)
