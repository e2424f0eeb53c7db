"""Files as a source: csv, json, xml, parquet, orc and text.

Names of options: CSVOptions, JSONOptions, XmlOptions, TextOptions, ParquetOptions, OrcOptions,
FileStreamOptions. Left out: ``basePath``, ``rowValidationXSDPath``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drawdown.kinds import TIME_OPTIONS, SourceKind
from drawdown.sources.bound_options import check_values
from drawdown.sources.files.cleaned_files import check_archive, cleans
from drawdown.values.model import problem

if TYPE_CHECKING:
    from drawdown.spec import Source

# Spark reads these only with a schema, in a stream; text has one column.
_NEEDS_SCHEMA = ("csv", "json", "xml", "parquet", "orc")
FILE_FORMATS = (*_NEEDS_SCHEMA, "text")
"""Formats of files; what the others have is known in ways of their own."""

_READ = {
    "csv": TIME_OPTIONS | {
        "sep", "delimiter", "encoding", "charset", "quote", "escape", "comment", "header", "enforceSchema",
        "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "nullValue", "nanValue", "positiveInf",
        "negativeInf", "maxColumns", "maxCharsPerColumn", "unescapedQuoteHandling", "multiLine",
        "charToEscapeQuoteEscaping", "emptyValue", "lineSep", "timeZone", "enableDateTimeParsingFallback",
        "inputBufferSize", "columnPruning", "extension",
    },
    "json": TIME_OPTIONS | {
        "primitivesAsString", "allowComments", "allowUnquotedFieldNames", "allowSingleQuotes",
        "allowNumericLeadingZeros", "allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars",
        "allowNonNumericNumbers", "multiLine", "encoding", "charset", "lineSep", "timeZone",
        "enableDateTimeParsingFallback", "maxNestingDepth", "maxNumLen", "maxStringLen",
    },
    "xml": TIME_OPTIONS | {
        "rowTag", "encoding", "charset", "excludeAttribute", "attributePrefix", "valueTag", "nullValue",
        "timeZone", "ignoreSurroundingSpaces", "ignoreNamespace", "wildcardColName", "multiLine",
    },
    "parquet": frozenset({"mergeSchema", "datetimeRebaseMode", "int96RebaseMode"}),
    "orc": frozenset({"mergeSchema"}),
    "text": frozenset({"wholetext", "lineSep", "encoding"}),
}  # fmt: skip
_FILES = frozenset(
    {"pathGlobFilter", "recursiveFileLookup", "modifiedAfter", "ignoreCorruptFiles", "ignoreMissingFiles"}
)
_STREAM = frozenset({
    "maxFilesPerTrigger", "maxBytesPerTrigger", "latestFirst", "fileNameOnly", "maxFileAge",
    "maxCachedFiles", "discardCachedInputRatio", "cleanSource", "sourceArchiveDir",
})  # fmt: skip


def _options(source: Source) -> frozenset[str]:
    return whole_options(source.format) if source.static else whole_options(source.format) | _STREAM


def whole_options(format: str) -> frozenset[str]:
    """The options of files that are read whole, not as a stream."""
    return _READ[format] | _FILES


def _check(source: Source) -> None:
    check_values(source.options)
    if source.path is None:
        raise problem("missing-key", f"a {source.format} source needs a path", do="add `path:`")
    if source.format in _NEEDS_SCHEMA and source.schema_text is None and not source.infer_schema:
        raise problem(
            "missing-key",
            f"a {source.format} source needs a schema",
            do="add `schema: schemas/x.ddl`, or `infer_schema: true`",
        )
    if source.infer_schema:
        _check_inferred(source)
    check_archive(source.path, source.options)
    if "drift" in source.policy.model_fields_set and not source.shows_columns:
        raise problem(
            "no-effect",
            "only csv with `header: true`, json and parquet files say what their columns are",
            "policy",
            "drift",
            do="remove the key",
        )


def _check_inferred(source: Source) -> None:
    if source.format not in _NEEDS_SCHEMA:
        raise problem(
            "no-effect",
            "only the schema of files with columns is inferred",
            "infer_schema",
            do="remove the key",
        )
    if source.schema_text is not None:
        raise problem(
            "contradiction", "the schema is declared and inferred", "infer_schema", do="keep one of them"
        )
    if source.static:
        raise problem(
            "contradiction",
            "a static source is read again at each run: no first run can keep its schema",
            "infer_schema",
            do="add `schema: schemas/x.ddl`",
        )


KIND = SourceKind(
    formats=FILE_FORMATS,
    reader="drawdown.sources.files.reader:read_files",
    backlog="drawdown.sources.files.backlog:waiting",
    keys=frozenset({"path", "settle", "policy", "infer_schema"}),
    options=_options,
    check=_check,
    takes_files=True,
    cleans=cleans,
    replays=True,
)
