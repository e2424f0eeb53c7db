"""Files as a source: csv, json, xml, parquet, orc and text.

Option names: CSVOptions, JSONOptions, XmlOptions, TextOptions, ParquetOptions, OrcOptions,
FileStreamOptions. Left out: ``basePath``, ``rowValidationXSDPath``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from drawdown.kinds import TIME_OPTIONS, ReplayCode, SourceKind
from drawdown.sources.files.cleaned_files import check_archive, cleans
from drawdown.sources.files.names import check_names
from drawdown.sources.rate_limits import BOUNDS, refuse_two_bounds
from drawdown.values.model import problem
from drawdown.values.option_types import DURATION, FLAG, RATIO, TEXT, WHOLE, OptionType, buffer, one_of

if TYPE_CHECKING:
    from drawdown.spec import Source

# In a stream, Spark reads these only with a schema; text has one column.
_NEEDS_SCHEMA = ("csv", "json", "xml", "parquet", "orc")
FILE_FORMATS = (*_NEEDS_SCHEMA, "text")
"""The formats that are read as files."""

_QUOTES = one_of(
    "STOP_AT_CLOSING_QUOTE", "BACK_TO_DELIMITER", "STOP_AT_DELIMITER", "SKIP_VALUE", "RAISE_ERROR"
)  # fmt: skip
_REBASE = one_of("EXCEPTION", "CORRECTED", "LEGACY")
_READ: Mapping[str, Mapping[str, OptionType]] = {
    "csv": TIME_OPTIONS
    | TEXT.of(
        "sep", "delimiter", "encoding", "charset", "quote", "escape", "comment", "nullValue", "nanValue",
        "positiveInf", "negativeInf", "charToEscapeQuoteEscaping", "emptyValue", "lineSep", "timeZone",
        "extension",
    )
    | FLAG.of(
        "header", "enforceSchema", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "multiLine",
        "enableDateTimeParsingFallback", "columnPruning",
    )
    | buffer(7).of("maxColumns")
    | buffer(8).of("maxCharsPerColumn", "inputBufferSize")
    | _QUOTES.of("unescapedQuoteHandling"),
    "json": TIME_OPTIONS
    | TEXT.of("encoding", "charset", "lineSep", "timeZone")
    | FLAG.of(
        "primitivesAsString", "allowComments", "allowUnquotedFieldNames", "allowSingleQuotes",
        "allowNumericLeadingZeros", "allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars",
        "allowNonNumericNumbers", "multiLine", "enableDateTimeParsingFallback",
    )
    | WHOLE.of("maxNestingDepth", "maxNumLen", "maxStringLen"),
    "xml": TIME_OPTIONS
    | TEXT.of(
        "rowTag", "encoding", "charset", "attributePrefix", "valueTag", "nullValue", "timeZone",
        "wildcardColName",
    )
    | FLAG.of("excludeAttribute", "ignoreSurroundingSpaces", "ignoreNamespace", "multiLine"),
    "parquet": FLAG.of("mergeSchema") | _REBASE.of("datetimeRebaseMode", "int96RebaseMode"),
    "orc": FLAG.of("mergeSchema"),
    "text": FLAG.of("wholetext") | TEXT.of("lineSep", "encoding"),
}  # fmt: skip
_FILES = TEXT.of("pathGlobFilter", "modifiedAfter") | FLAG.of(
    "recursiveFileLookup", "ignoreCorruptFiles", "ignoreMissingFiles"
)
_STREAM = (
    BOUNDS
    | FLAG.of("latestFirst", "fileNameOnly")
    | DURATION.of("maxFileAge")
    | WHOLE.of("maxCachedFiles")
    | RATIO.of("discardCachedInputRatio")
    | one_of("archive", "delete", "off").of("cleanSource")
    | TEXT.of("sourceArchiveDir")
)


def _options(source: Source) -> Mapping[str, OptionType]:
    whole = whole_options(source.format)
    return whole if source.static else {**whole, **_STREAM}


def whole_options(format: str) -> Mapping[str, OptionType]:
    """Return the options of files that are read whole, not as a stream."""
    return {**_READ[format], **_FILES}


def _check(source: Source) -> None:
    refuse_two_bounds(source.options)
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
    check_names(source)
    if "drift" in source.policy.model_fields_set and not source.shows_columns:
        raise problem(
            "no-effect",
            "only csv with `header: true`, json and parquet files name their columns",
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
            "a static source is read again in each run, so a first run cannot fix its schema",
            "infer_schema",
            do="add `schema: schemas/x.ddl`",
        )


KIND = SourceKind(
    formats=FILE_FORMATS,
    title="Files",
    page="files.md",
    reader="drawdown.sources.files.reader:read_files",
    backlog="drawdown.sources.files.backlog:waiting",
    keys=frozenset(
        {
            "path",
            "storage",
            "settle",
            "policy",
            "limits",
            "infer_schema",
            "order",
            "names_late",
            "arrivals",
            "identity",
        }
    ),
    static=True,
    options=_options,
    check=_check,
    takes_files=True,
    cleans=cleans,
    replay=ReplayCode(
        check="drawdown.sources.files.replay:files_to_read",
        rows="drawdown.sources.files.reader:read_replayed_files",
    ),
)
