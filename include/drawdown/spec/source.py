"""A source of a pipeline: what is read, how, and its watermark."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PrivateAttr, model_validator

from drawdown.spec.formats.cleaned_files import check_archive
from drawdown.spec.formats.kafka_source import check_kafka_options
from drawdown.spec.formats.options import (
    SourceFormat,
    check_names,
    check_one_bound,
    check_source_values,
    required_options,
    source_options,
)
from drawdown.spec.reading.model import Column, Name, OptionValue, SpecModel, problem
from drawdown.spec.values.duration import Duration, PositiveDuration
from drawdown.spec.values.paths import FolderFile, SourcePath
from drawdown.spec.values.schema_text import SchemaText, names_a_file

# Spark reads these only with a schema, in a stream; delta knows its own, text has one column.
_NEEDS_SCHEMA = ("csv", "json", "xml", "parquet", "orc")
_PARSED = ("csv", "json", "xml")
_FILES = (*_NEEDS_SCHEMA, "text")
_MADE_UP = "Spark makes its rows up, for tests and benchmarks: there is nothing for a schedule to drain"
_TEST_ONLY = {
    "socket": "what a socket gave before a failure cannot be read again: Spark has it for tests",
    "rate": _MADE_UP,
    "rate-micro-batch": _MADE_UP,
}
# A key, the formats it says something about, and why not about the others.
_KEYS_OF: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("broker", ("kafka",), "only Kafka sources have it"),
    ("value", ("kafka",), "only Kafka sources have it"),
    ("reader", ("python",), "only Python data sources have it"),
    ("path", (*_FILES, "delta", "kafka"), "only files and tables have a path"),
    ("table", ("table",), "only a table source has it"),
    ("settle", _FILES, "only files are written bit by bit"),
    ("policy", _FILES, "it is about files"),
    ("infer_schema", _NEEDS_SCHEMA, "only the schema of files with columns is inferred"),
)


FILE_FORMATS = frozenset({"csv", "json", "xml", "parquet", "orc", "text", "avro"})
"""Formats of files; the others are asked for what they have in ways of their own."""


class Watermark(SpecModel):
    """Spark's withWatermark(column, delay); ``max_future`` bounds event times ahead of the clock.

    ``late: keep`` copies rows that are not newer than the watermark to the quarantine table.
    """

    column: Column
    delay: Duration
    max_future: PositiveDuration | None = None
    late: Literal["count", "keep"] = "count"


class Policy(SpecModel):
    """What a run does about files that are not what they should be.

    ``warn`` goes on and says so in the run record, ``quarantine`` sets the file's rows aside, ``fail``
    stops before anything is touched. ``rewritten`` without a value: warn of files that committed batches
    have read, fail before a batch is replayed with other data.
    """

    rewritten: Literal["warn", "fail"] | None = None
    too_old: Literal["warn", "fail"] = "warn"
    future_mtime: Literal["warn", "fail"] = "fail"
    drift: Literal["warn", "quarantine", "fail"] = "warn"


class Source(SpecModel):
    """One input.

    ``path`` is below the storage root. ``schema`` is a .ddl file in the pipeline's folder or the DDL itself;
    with ``infer_schema`` the first run finds it and keeps it for all later ones. ``reader`` is a .py file
    in the pipeline's folder with a Python data source. ``table`` is the name that another pipeline's sink
    gives its Delta table; the path is then that sink's. A file younger than ``settle`` may still be
    written: a run waits until it is not.
    """

    format: SourceFormat
    path: SourcePath | None = None
    schema_text: SchemaText | None = Field(default=None, alias="schema")
    infer_schema: bool = False
    options: dict[str, OptionValue] = Field(default_factory=dict)
    watermark: Watermark | None = None
    static: bool = False
    malformed: Literal["quarantine", "drop", "fail"] = "quarantine"
    settle: PositiveDuration | None = None
    policy: Policy = Policy()
    broker: Name = "default"
    value: Literal["json", "csv", "avro", "string"] = "json"
    reader: FolderFile | None = None
    table: Name | None = None

    _schema_ddl: str | None = PrivateAttr(default=None)

    @property
    def schema_file(self) -> str | None:
        """The schema's file; None when the source declares none, or in the spec itself."""
        return self.schema_text if self.schema_text and names_a_file(self.schema_text) else None

    @property
    def schema_ddl(self) -> str | None:
        """The text of the schema; None when the source declares none."""
        return self._schema_ddl

    @property
    def test_only(self) -> str | None:
        """Why the source is for `run`, `watch` and tests only; None for one that a schedule may use."""
        return _TEST_ONLY.get(self.format)

    @model_validator(mode="after")
    def _says_one_thing(self) -> Source:
        known = source_options(self.format, self.static)
        if known is not None:
            check_names(self.options, known, "options")
            check_source_values(self.options, "options")
        check_one_bound(self.options, "options")
        for key, formats, why in _KEYS_OF:
            if key in self.model_fields_set and self.format not in formats:
                raise problem("no-effect", why, key, do="remove the key")
        if self.format == "kafka":
            self._check_kafka()
        elif self.format == "table":
            self._check_table()
        elif self.format == "python" or self.test_only:
            self._check_generated()
        else:
            self._check_files()
        if self.static and self.watermark:
            raise problem(
                "contradiction",
                "a static source has no watermark",
                "watermark",
                do="remove static or watermark",
            )
        self._check_policy()
        return self

    def _check_policy(self) -> None:
        for key in ("settle", "policy"):
            if self.static and key in self.model_fields_set:
                raise problem("no-effect", "a static source is read whole", key, do="remove the key")
        if "drift" in self.policy.model_fields_set and not self.shows_columns:
            raise problem(
                "no-effect",
                "only csv with `header: true`, json and parquet files say what their columns are",
                "policy",
                "drift",
                do="remove the key",
            )

    @property
    def is_files(self) -> bool:
        """Whether a stream of it takes files of a folder."""
        return self.format in _FILES and not self.static

    @property
    def shows_columns(self) -> bool:
        """Whether its files say what their columns are, so that a drift can be seen."""
        header = str(self.options.get("header", False)).lower() == "true"
        return self.format in ("json", "parquet") or (self.format == "csv" and header)

    @property
    def is_parsed(self) -> bool:
        """Whether text has to be parsed into columns, so that a row can fail to.

        Text that is no UTF-8 makes a row of any other format malformed, too.
        """
        if self.format == "kafka":
            return self.value != "string"
        return self.format in _PARSED

    def _check_files(self) -> None:
        if self.path is None:
            raise problem("missing-key", f"a {self.format} source needs a path", do="add `path:`")
        if self.format in _NEEDS_SCHEMA and self.schema_text is None and not self.infer_schema:
            raise problem(
                "missing-key",
                f"a {self.format} source needs a schema",
                do="add `schema: schemas/x.ddl`, or `infer_schema: true`",
            )
        if self.infer_schema and self.schema_text is not None:
            raise problem(
                "contradiction", "the schema is declared and inferred", "infer_schema", do="keep one of them"
            )
        if self.infer_schema and self.static:
            raise problem(
                "contradiction",
                "a static source is read again at each run: no first run can keep its schema",
                "infer_schema",
                do="add `schema: schemas/x.ddl`",
            )
        if self.format == "delta" and self.schema_text is not None:
            raise problem("no-effect", "a Delta table knows its schema", "schema", do="remove the key")
        check_archive(self.path, self.options)

    def _check_table(self) -> None:
        if self.table is None:
            raise problem("missing-key", "a table source needs a table", do="add `table: name`")
        if self.schema_text is not None:
            raise problem("no-effect", "a Delta table knows its schema", "schema", do="remove the key")

    def _check_generated(self) -> None:
        """A Python data source, and Spark's own sources for tests."""
        if self.static:
            raise problem(
                "contradiction", f"a {self.format} source cannot be static", "static", do="remove the key"
            )
        if self.format == "python" and self.reader is None:
            raise problem("missing-key", "a python source needs a reader", do="add `reader: clock.py`")
        if self.test_only and self.schema_text is not None:
            raise problem("no-effect", "Spark says what its columns are", "schema", do="remove the key")
        for name in required_options(self.format):
            if name not in self.options:
                raise problem(
                    "missing-key",
                    f"a {self.format} source needs {name}",
                    "options",
                    do=f"add it: `options: {{{name}: ...}}`",
                )

    def _check_kafka(self) -> None:
        if self.path is not None:
            raise problem(
                "no-effect", "a Kafka source has no path", "path", do="name topics in options.subscribe"
            )
        if self.static:
            raise problem("contradiction", "a Kafka source cannot be static", "static", do="remove the key")
        check_kafka_options(self.options)
        if self.value == "string" and self.schema_text is not None:
            raise problem(
                "no-effect",
                "value: string has no schema",
                "schema",
                do="remove the key, or say json, csv or avro",
            )
        suffix = "avsc" if self.value == "avro" else "ddl"
        if self.value != "string" and self.schema_text is None:
            raise problem(
                "missing-key", f"value: {self.value} needs a schema", do=f"add `schema: schemas/x.{suffix}`"
            )
        if self.value == "avro" and not str(self.schema_file).endswith(".avsc"):
            raise problem(
                "wrong-path",
                "value: avro needs the Avro schema that the records were written with",
                "schema",
                do="name a .avsc file in the pipeline's folder",
            )
