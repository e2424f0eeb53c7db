"""The sink of a pipeline: where its rows go, how, and when readers see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PrivateAttr, StringConstraints, model_validator

from drawdown.kinds import SinkKind, check_options
from drawdown.sinks.registry import SINKS
from drawdown.values.kafka_names import Topic
from drawdown.values.model import Column, Name, OptionValue, SpecModel, problem
from drawdown.values.paths import FolderFile, SinkPath
from drawdown.values.schema_text import SchemaText, names_a_file

OutputMode = Literal["append", "update", "complete"]
# The name of a Delta table, or schema.table of a database.
Table = Annotated[
    str, StringConstraints(pattern=r"^([A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$")
]

# Keys that only some kinds have.
_SOME_HAVE = frozenset[str]().union(*(kind.keys for kind in SINKS.values()))
if TYPE_CHECKING:
    SinkFormat = str
else:
    SinkFormat = Literal[tuple(SINKS)]


class Sink(SpecModel):
    """The output. ``schema`` is a .ddl file in the pipeline's folder or the DDL itself.

    ``publish: audited`` shows rows after the audit, ``direct`` per batch.

    ``ordered: false`` publishes a passed slice although an earlier one is held.

    ``delivery`` of a Kafka sink: exactly once by transactions, or at least once by Spark's own writer.

    ``table`` is the name by which Spark's catalog, and ``format: table`` sources, know a Delta table; of
    PostgreSQL it is ``schema.table`` in a ``database`` of project.yaml.
    """

    format: SinkFormat
    path: SinkPath | None = None
    table: Table | None = None
    database: Name = "default"
    topic: Topic | None = None
    broker: Name = "default"
    delivery: Literal["exactly_once", "at_least_once"] = "exactly_once"
    function: FolderFile | None = None
    schema_text: SchemaText | None = Field(default=None, alias="schema")
    mode: OutputMode = "append"
    keys: list[Column] = Field(default_factory=list)
    time_column: Column | None = None
    publish: Literal["audited", "direct"] = "audited"
    ordered: bool = True
    partition_by: list[Column] = Field(default_factory=list)
    options: dict[str, OptionValue] = Field(default_factory=dict)

    _schema_ddl: str | None = PrivateAttr(default=None)

    @property
    def schema_file(self) -> str | None:
        """The schema's file; None when the sink declares none, or in the spec itself."""
        return self.schema_text if self.schema_text and names_a_file(self.schema_text) else None

    @property
    def schema_ddl(self) -> str | None:
        """Return the text of the schema; None if the sink has none."""
        return self._schema_ddl

    @property
    def kind(self) -> SinkKind:
        """Return the kind of its format."""
        return SINKS[self.format]

    @property
    def target(self) -> str:
        """Return where the rows go: the path, the topic, the user's file."""
        return self.kind.shown(self)

    @property
    def readable(self) -> bool:
        """Whether rows can be read back after they were written: by an audit, a test, another pipeline."""
        return self.kind.readable

    @property
    def auditable(self) -> bool:
        """Whether an audit can read the rows of a slice."""
        return self.readable or self.staged_apart

    @property
    def transactional(self) -> bool:
        """Whether rows reach Kafka exactly once, through Drawdown's own transactions."""
        return self.format == "kafka" and self.delivery == "exactly_once"

    @property
    def treatment(self) -> dict[str, str | bool]:
        """Return the keys that decide how a batch becomes visible: it keeps those it was staged under."""
        return {"publish": self.publish, "delivery": self.delivery, "ordered": self.ordered}

    @property
    def staged_apart(self) -> bool:
        """Whether rows wait in a separate folder until a publish moves them into the target."""
        return self.kind.staging(self.mode, self.delivery) == "apart"

    @property
    def staged(self) -> bool:
        """Whether rows stay invisible until a publish, so that a batch can be undone."""
        return self.kind.staging(self.mode, self.delivery) != "none"

    @property
    def test_only(self) -> str | None:
        """Return why a schedule must not use it; None if it may."""
        return self.kind.test_only

    @model_validator(mode="before")
    @classmethod
    def _published_direct_without_saying_so(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        kind = SINKS.get(str(data.get("format")))
        mode, delivery = str(data.get("mode", "append")), str(data.get("delivery", "exactly_once"))
        stages = kind is not None and kind.staging(mode, delivery) != "none"
        return data if stages else {"publish": "direct", **data}

    @model_validator(mode="after")
    def _says_one_thing(self) -> Sink:
        self._check_keys()
        check_options(self.options, self.kind.options[self.format], "options")
        if not self.staged and self.publish != "direct":
            raise problem(
                "contradiction", f"{self._shown} supports only `publish: direct`", "publish", do="say direct"
            )
        self._check_order()
        modes, why = self.kind.modes
        if self.mode not in modes:
            raise problem(
                "contradiction",
                f"{self.format} does not support mode: {self.mode}: {why}",
                "mode",
                do=f"use mode {' or '.join(modes)}, or a delta sink",
            )
        self._check_columns()
        self.kind.check(self)
        return self

    @property
    def _shown(self) -> str:
        return f"{self.format}, {self.delivery}," if self.format == "kafka" else self.format

    def _check_keys(self) -> None:
        given = {"schema" if name == "schema_text" else name for name in self.model_fields_set}
        for name in sorted((given & _SOME_HAVE) - self.kind.keys):
            takes = ", ".join(sorted(self.kind.keys)) or "none of its own"
            raise problem(
                "no-effect", f"a {self.format} sink has no {name} (its keys: {takes})", name, do="remove it"
            )
        for name, example in self.kind.required:
            if name not in given:
                raise problem("missing-key", f"a {self.format} sink needs sink.{name}", do=f"add `{example}`")

    def _check_order(self) -> None:
        if self.ordered:
            return
        if self.publish == "direct":
            raise problem("no-effect", "direct publishing does not hold slices", "ordered", do="remove it")
        if self.mode != "append":
            raise problem(
                "contradiction",
                f"in mode: {self.mode} a slice that is released late would overwrite later ones",
                "ordered",
                do="remove it: later slices wait behind a held one",
            )
        if not self.kind.out_of_order:
            raise problem(
                "contradiction",
                f"a {self.format} sink remembers only the last batch that it received",
                "ordered",
                do="remove it, or use delta",
            )

    def _check_columns(self) -> None:
        if "keys" in self.kind.keys and self.mode == "update" and not self.keys:
            raise problem("missing-key", "mode: update needs keys", "mode", do="add `keys: [...]`")
        if self.mode != "update" and self.keys:
            raise problem(
                "no-effect", f"mode: {self.mode} has no keys", "keys", do="remove them, or set `mode: update`"
            )
        for key in ("keys", "partition_by"):
            columns = [column.lower() for column in getattr(self, key)]
            if len(set(columns)) != len(columns):
                raise problem("contradiction", "a column stands twice", key, do="remove one of them")
