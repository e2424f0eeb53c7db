"""Files as a sink: parquet, orc, json, csv and text, with the log of Spark's own file sink."""

from __future__ import annotations

from drawdown.kinds import TIME_OPTIONS, SinkKind

_ALL = frozenset({"compression", "maxRecordsPerFile", "retention"})

KIND = SinkKind(
    formats=("parquet", "orc", "json", "csv", "text"),
    stage=lambda _: "drawdown.sinks.files.stage:NativeFileSink",
    keys=frozenset({"path", "partition_by", "time_column"}),
    required=(("path", "path: tables/x"),),
    options={
        "parquet": _ALL,
        "orc": _ALL,
        "json": _ALL | TIME_OPTIONS | {
            "encoding", "lineSep", "timeZone", "ignoreNullFields", "pretty",
            "writeNonAsciiCharacterAsCodePoint",
        },
        "csv": _ALL | TIME_OPTIONS | {
            "sep", "delimiter", "encoding", "quote", "quoteAll", "escape", "escapeQuotes", "header",
            "nullValue", "emptyValue", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace",
            "charToEscapeQuoteEscaping", "lineSep", "timeZone", "extension",
        },
        "text": _ALL | {"encoding", "lineSep"},
    },
    modes=(("append",), "its files cannot be changed or emptied (truncated) once they are written"),
    readable=True,
    no_replay="readers know its files, and one commit cannot take some away",
)  # fmt: skip
