"""A source of a pipeline: location, format, options and watermark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from drawdown.kinds import SourceKind, check_options
from drawdown.sources.registry import SOURCES
from drawdown.spec.connections.notifications import Notifications
from drawdown.spec.limits import OwnLimits, check_limits
from drawdown.values.duration import Duration, PositiveDuration, at_most
from drawdown.values.kafka_names import GroupName
from drawdown.values.model import Column, Name, OptionValue, SpecModel, problem
from drawdown.values.paths import FolderFile, SourcePath
from drawdown.values.schema_text import SchemaText, names_a_file

# Keys that only some kinds have.
_SOME_HAVE = frozenset[str]().union(*(kind.keys for kind in SOURCES.values()))
# All members of a group wait for a young file, so no longer than one would wait for an upload.
SettleTime = Annotated[PositiveDuration, AfterValidator(at_most("1 hour"))]
if TYPE_CHECKING:
    SourceFormat = str
else:
    SourceFormat = Literal[tuple(SOURCES)]


class Watermark(SpecModel):
    """Spark's withWatermark(column, delay); ``max_future`` bounds event times ahead of the clock.

    ``late: keep`` copies rows that are not newer than the watermark to the quarantine table.
    """

    column: Column
    delay: Duration
    max_future: PositiveDuration | None = None
    late: Literal["count", "keep"] = "count"


class Policy(SpecModel):
    """What a run does about damaged, changed or unexpected files.

    ``warn`` continues with a warning in the run record, ``quarantine`` quarantines the file's rows, ``aside``
    does not read the file and notes its name, ``fail`` stops before anything is changed. ``rewritten``
    without a value: warn of files that committed batches have read, fail before a batch is replayed with
    other data.
    """

    rewritten: Literal["warn", "fail"] | None = None
    too_old: Literal["warn", "fail"] = "warn"
    future_mtime: Literal["warn", "fail"] = "fail"
    drift: Literal["warn", "quarantine", "fail"] = "warn"
    oversized: Literal["aside", "fail"] = "aside"


class Source(SpecModel):
    """One input.

    ``path`` is below the storage root, or below the address of ``storage``, an entry of project.yaml's
    ``storages:``. ``schema`` is a .ddl file in the pipeline's folder or the DDL itself;
    with ``infer_schema`` the first run infers it and all later runs keep it. ``reader`` is a .py file in the
    pipeline's folder with a Python data source. ``table`` is the name that another pipeline's sink gives its
    Delta table; the path is then that sink's. A file younger than ``settle`` may still be written, so a run
    waits. ``order: name``: names rise with time, but for ``names_late``. ``arrivals``: new files are
    reported. ``limits``: how large and how deep a record may be. ``identity``: what tells a file from another
    one. ``commit_group``: the Kafka consumer group that is told what was published.
    """

    format: SourceFormat
    path: SourcePath | None = None
    storage: Name | None = None
    schema_text: SchemaText | None = Field(default=None, alias="schema")
    infer_schema: bool = False
    options: dict[str, OptionValue] = Field(default_factory=dict)
    watermark: Watermark | None = None
    static: bool = False
    malformed: Literal["quarantine", "drop", "fail"] = "quarantine"
    settle: SettleTime | None = None
    order: Literal["time", "name"] = "time"
    names_late: PositiveDuration = Duration.parse("1 hour")
    arrivals: Notifications | None = None
    identity: Literal["name", "name+time", "content"] = "name"
    policy: Policy = Policy()
    limits: OwnLimits | None = None
    broker: Name = "default"
    commit_group: GroupName | None = None
    value: Literal["json", "csv", "avro", "string"] = "json"
    reader: FolderFile | None = None
    table: Name | None = None

    _schema_ddl: str | None = PrivateAttr(default=None)

    @property
    def path_below_root(self) -> str | None:
        """Return the path below the storage root, where sinks are; None when it is elsewhere."""
        return self.path if self.storage is None else None

    @property
    def schema_file(self) -> str | None:
        """Return the schema's file; None if there is none or the spec contains the schema itself."""
        return self.schema_text if self.schema_text and names_a_file(self.schema_text) else None

    @property
    def schema_ddl(self) -> str | None:
        """Return the text of the schema; None if there is none."""
        return self._schema_ddl

    @property
    def kind(self) -> SourceKind:
        """Return the kind of its format."""
        return SOURCES[self.format]

    @property
    def test_only(self) -> str | None:
        """Return why only `run`, `watch` and tests may use the source; None if a schedule may."""
        return self.kind.test_only.get(self.format)

    @model_validator(mode="after")
    def _says_one_thing(self) -> Source:
        known = self.kind.options(self)
        if known is not None:
            check_options(self.options, known, "options")
        for key in sorted((self.model_fields_set & _SOME_HAVE) - self.kind.keys):
            takes = ", ".join(sorted(self.kind.keys)) or "none of its own"
            raise problem(
                "no-effect", f"a {self.format} source has no {key} (its keys: {takes})", key, do="remove it"
            )
        if self.static and not self.kind.static:
            raise problem(
                "contradiction", f"a {self.format} source cannot be static", "static", do="remove the key"
            )
        self.kind.check(self)
        check_limits(self)
        if self.static and self.watermark:
            raise problem(
                "contradiction",
                "a static source has no watermark",
                "watermark",
                do="remove static or watermark",
            )
        for key in ("settle", "policy", "order", "arrivals", "identity"):
            if self.static and key in self.model_fields_set:
                raise problem("no-effect", "a static source is read completely", key, do="remove the key")
        return self

    @property
    def judging(self) -> dict[str, Any]:
        """Return its keys that decide which rows of a batch go on, as JSON-ready values."""
        mark = self.watermark and self.watermark.model_dump(mode="json", include={"max_future", "late"})
        return {"malformed": self.malformed, "drift": self.policy.drift, "watermark": mark}

    def judging_as(self, noted: Mapping[str, Any]) -> Source:
        """Return the source with these keys as `judging` gave them."""
        mark = self.watermark
        if mark is not None and noted["watermark"] is not None:
            mark = Watermark.model_validate({**mark.model_dump(mode="json"), **noted["watermark"]})
        drift = self.policy.model_copy(update={"drift": noted["drift"]})
        return self.model_copy(update={"malformed": noted["malformed"], "policy": drift, "watermark": mark})

    @property
    def is_files(self) -> bool:
        """Whether it streams files from a folder."""
        return self.kind.takes_files and not self.static

    @property
    def shows_columns(self) -> bool:
        """Whether its files name their columns, so that a drift can be detected."""
        header = str(self.options.get("header", False)).lower() == "true"
        return self.format in ("json", "parquet") or (self.format == "csv" and header)

    @property
    def is_parsed(self) -> bool:
        """Whether text has to be parsed into columns, so that a row can fail to.

        In every other format, text that is not UTF-8 also makes a row malformed.
        """
        if self.format == "kafka":
            return self.value != "string"
        return self.format in ("csv", "json", "xml")
