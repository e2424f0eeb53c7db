"""Files as a sink: parquet, orc, json, csv and text, with the log of Spark's own file sink."""

from __future__ import annotations

from drawdown.kinds import TIME_OPTIONS, Keeps, SinkKind
from drawdown.values.option_types import FLAG, TEXT, WHOLE

_ALL = TEXT.of("compression", "retention") | WHOLE.of("maxRecordsPerFile")

KIND = SinkKind(
    formats=("parquet", "orc", "json", "csv", "text"),
    title="Files",
    page="guarantees.md",
    stage=lambda _: "drawdown.sinks.files.stage:NativeFileSink",
    keys=frozenset({"path", "partition_by", "time_column"}),
    required=(("path", "path: tables/x"),),
    options={
        "parquet": _ALL,
        "orc": _ALL,
        "json": _ALL | TIME_OPTIONS
        | TEXT.of("encoding", "lineSep", "timeZone")
        | FLAG.of("ignoreNullFields", "pretty", "writeNonAsciiCharacterAsCodePoint"),
        "csv": _ALL | TIME_OPTIONS
        | TEXT.of(
            "sep", "delimiter", "encoding", "quote", "escape", "nullValue", "emptyValue",
            "charToEscapeQuoteEscaping", "lineSep", "timeZone", "extension",
        )
        | FLAG.of(
            "quoteAll", "escapeQuotes", "header", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace",
        ),
        "text": _ALL | TEXT.of("encoding", "lineSep"),
    },
    modes=(("append",), "its files cannot be changed or emptied (truncated) once they are written"),
    keeps=Keeps(empty_partitions=False),
    readable=True,
    no_replay="readers know its files, and one commit cannot take some away",
)  # fmt: skip
