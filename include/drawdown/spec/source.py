"""A source of a pipeline: what is read, how, and its watermark."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PrivateAttr, TypeAdapter, ValidationError, model_validator

from drawdown.spec.duration import Duration, PositiveDuration
from drawdown.spec.model import Column, Name, OptionValue, SpecModel, problem
from drawdown.spec.options import SourceFormat, check_names, check_one_bound, source_options
from drawdown.spec.paths import FolderFile, SinkPath, SourcePath

# Spark reads these only with a declared schema, in a stream; delta knows its own, text has one column.
_NEEDS_SCHEMA = ("csv", "json", "xml", "parquet", "orc")
_CAN_BE_MALFORMED = ("csv", "json", "xml")
_ARCHIVE: TypeAdapter[str] = TypeAdapter(SinkPath)
_SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")


class Watermark(SpecModel):
    """Spark's withWatermark(column, delay); ``max_future`` bounds event times ahead of the clock."""

    column: Column
    delay: Duration
    max_future: PositiveDuration | None = None


class Source(SpecModel):
    """One input. ``path`` is below the storage root, ``schema`` a .ddl file in the pipeline's folder."""

    format: SourceFormat
    path: SourcePath | None = None
    schema_file: FolderFile | None = Field(default=None, alias="schema")
    options: dict[str, OptionValue] = Field(default_factory=dict)
    watermark: Watermark | None = None
    static: bool = False
    malformed: Literal["quarantine", "drop", "fail"] = "quarantine"
    broker: Name = "default"
    value: Literal["json", "csv", "string"] = "json"

    _schema_ddl: str | None = PrivateAttr(default=None)

    @property
    def schema_ddl(self) -> str | None:
        """The text of the schema file; None when the source declares none."""
        return self._schema_ddl

    @model_validator(mode="after")
    def _says_one_thing(self) -> Source:
        check_names(self.options, source_options(self.format, self.static), "options")
        check_one_bound(self.options, "options")
        if self.format == "kafka":
            self._check_kafka()
        else:
            self._check_files()
        if self.static and self.watermark:
            raise problem(
                "contradiction",
                "a static source has no watermark",
                "watermark",
                do="remove static or watermark",
            )
        if "malformed" in self.model_fields_set and not self.can_be_malformed:
            raise problem(
                "no-effect", "rows of this format are never malformed", "malformed", do="remove the key"
            )
        return self

    @property
    def can_be_malformed(self) -> bool:
        """Whether text has to be parsed into columns, so that a row can fail to."""
        if self.format == "kafka":
            return self.value in ("json", "csv")
        return self.format in _CAN_BE_MALFORMED

    def _check_files(self) -> None:
        if self.path is None:
            raise problem("missing-key", f"a {self.format} source needs a path", do="add `path:`")
        for key in ("broker", "value"):
            if key in self.model_fields_set:
                raise problem("no-effect", "only Kafka sources have it", key, do="remove the key")
        if self.format in _NEEDS_SCHEMA and self.schema_file is None:
            raise problem(
                "missing-key", f"a {self.format} source needs a schema", do="add `schema: schemas/x.ddl`"
            )
        if self.format == "delta" and self.schema_file is not None:
            raise problem("no-effect", "a Delta table knows its schema", "schema", do="remove the key")
        self._check_archive()

    def _check_archive(self) -> None:
        archive = self.options.get("sourceArchiveDir")
        if (self.options.get("cleanSource") == "archive") != (archive is not None):
            raise problem(
                "contradiction",
                "cleanSource: archive and sourceArchiveDir go together",
                "options",
                do="give both or none",
            )
        if archive is not None:
            try:
                _ARCHIVE.validate_python(archive, strict=True)
            except ValidationError:
                raise problem(
                    "wrong-path",
                    "must be a folder below the storage root",
                    "options",
                    "sourceArchiveDir",
                    do="write a relative path without ..",
                ) from None

    def _check_kafka(self) -> None:
        if self.path is not None:
            raise problem(
                "no-effect", "a Kafka source has no path", "path", do="name topics in options.subscribe"
            )
        if self.static:
            raise problem("contradiction", "a Kafka source cannot be static", "static", do="remove the key")
        given = [key for key in _SUBSCRIPTIONS if key in self.options]
        if len(given) != 1:
            raise problem(
                "missing-key" if not given else "contradiction",
                f"a Kafka source needs exactly one of {', '.join(_SUBSCRIPTIONS)}",
                "options",
                do="give one, such as `options: {subscribe: my_topic}`",
            )
        if self.value == "string" and self.schema_file is not None:
            raise problem(
                "no-effect", "value: string has no schema", "schema", do="remove the key, or say json or csv"
            )
        if self.value != "string" and self.schema_file is None:
            raise problem(
                "missing-key", f"value: {self.value} needs a schema", do="add `schema: schemas/x.ddl`"
            )
