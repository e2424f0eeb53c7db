"""The sink of a pipeline: where its rows go, how, and when readers see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, StringConstraints, model_validator

from drawdown.spec.formats.options import TRANSACTIONAL, SinkFormat, check_names, sink_options
from drawdown.spec.reading.model import Column, Name, OptionValue, SpecModel, problem
from drawdown.spec.values.paths import FolderFile, SinkPath
from drawdown.spec.values.tables import check_table

OutputMode = Literal["append", "update", "complete"]
# The name of a Delta table, or schema.table of a database.
Table = Annotated[
    str, StringConstraints(pattern=r"^([A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$")
]
Topic = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,249}$")]

_EVERYWHERE = frozenset({"format", "schema", "mode", "publish", "ordered", "options"})
_TABLE = frozenset({"path", "partition_by", "time_column"})
# The keys that have an effect, by format; "file" stands for all file formats.
_KEYS: Mapping[str, frozenset[str]] = {
    "delta": _TABLE | {"keys", "table"},
    "file": _TABLE,
    "kafka": frozenset({"topic", "broker", "delivery"}),
    "postgres": frozenset({"table", "database", "keys", "time_column"}),
    "foreach_batch": frozenset({"function"}),
    "foreach": frozenset({"function"}),
    "console": frozenset(),
    "memory": frozenset(),
}
_REQUIRED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "delta": (("path", "path: tables/x"), ("schema", "schema: schemas/x.ddl")),
    "file": (("path", "path: tables/x"),),
    "postgres": (("table", "table: public.x"), ("schema", "schema: schemas/x.ddl")),
    "foreach_batch": (("function", "function: sink.py"),),
    "foreach": (("function", "function: sink.py"),),
}
_MODES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "file": (("append",), "its files cannot be changed or emptied (truncated) once they are written"),
    "memory": (("append", "complete"), "a table in memory has no keys to update rows by"),
}
# Rows of these can be staged, so that they are shown after their audit.
_AUDITED = ("delta", "postgres")
_TEST_ONLY: Mapping[str, str] = {
    "console": "the console sink prints rows and keeps none of them",
    "memory": "the memory sink keeps its rows in the driver, and they are gone with it",
}


class Sink(SpecModel):
    """The output. ``publish: audited`` shows rows after the audit, ``direct`` per batch.

    ``ordered: false`` shows a slice that passed although an earlier one is held.

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
    schema_file: FolderFile | None = Field(default=None, alias="schema")
    mode: OutputMode = "append"
    keys: list[Column] = Field(default_factory=list)
    time_column: Column | None = None
    publish: Literal["audited", "direct"] = "audited"
    ordered: bool = True
    partition_by: list[Column] = Field(default_factory=list)
    options: dict[str, OptionValue] = Field(default_factory=dict)

    _schema_ddl: str | None = PrivateAttr(default=None)

    @property
    def schema_ddl(self) -> str | None:
        """The text of the schema file; None when the sink declares none."""
        return self._schema_ddl

    @property
    def target(self) -> str:
        """Where the rows go, in a word or two: the path, the topic, the user's file."""
        if self.format == "kafka":
            return f"topic {self.topic}" if self.topic else "topics named by the rows"
        if self.format == "postgres":
            return f"{self.database} {self.table}"
        return self.path or self.function or self.format

    @property
    def readable(self) -> bool:
        """Whether rows can be read back after they were written: by an audit, a test, another pipeline."""
        return self.path is not None or self.format == "postgres"

    @property
    def auditable(self) -> bool:
        """Whether an audit can read the rows of a slice."""
        return self.readable or self.staged_apart

    @property
    def transactional(self) -> bool:
        """Whether rows reach Kafka exactly once, by transactions of our own."""
        return self.format == "kafka" and self.delivery == "exactly_once"

    @property
    def staged_apart(self) -> bool:
        """Whether rows wait in a folder of their own until a publish has taken them into the target."""
        stages = self.transactional or self.format == "postgres"
        return stages or (self.format == "delta" and self.mode == "update")

    @property
    def staged(self) -> bool:
        """Whether no reader sees a row before a publish: what a batch has written can be taken back."""
        return self.format == "delta" or self.staged_apart

    @property
    def test_only(self) -> str | None:
        """Why no schedule may use it; None when one may."""
        return _TEST_ONLY.get(self.format)

    @model_validator(mode="before")
    @classmethod
    def _published_direct_without_saying_so(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("format") in _AUDITED:
            return data
        if data.get("format") == "kafka" and data.get("delivery") != "at_least_once":
            return data
        return {"publish": "direct", **data}

    @model_validator(mode="after")
    def _says_one_thing(self) -> Sink:
        kind = self.format if self.format in _KEYS else "file"
        self._check_keys(kind)
        check_names(self.options, sink_options(self.format), "options")
        if kind not in _AUDITED and not self.transactional and self.publish != "direct":
            raise problem(
                "contradiction", f"{self._shown} can only be published direct", "publish", do="say direct"
            )
        for name in self.options if self.transactional else ():
            if name not in TRANSACTIONAL:
                raise problem(
                    "no-effect", "only Spark's own writer takes this option", "options", name,
                    do="remove it, or say `delivery: at_least_once`",
                )  # fmt: skip
        self._check_order()
        modes, why = _MODES.get(kind, (("append", "update", "complete"), ""))
        if self.mode not in modes:
            raise problem(
                "contradiction",
                f"{self.format} cannot take mode: {self.mode}: {why}",
                "mode",
                do=f"say {' or '.join(modes)}, or use delta",
            )
        self._check_columns(kind)
        if self.table is not None:
            check_table(kind, self.table)
        return self

    @property
    def _shown(self) -> str:
        return f"{self.format}, {self.delivery}," if self.format == "kafka" else self.format

    def _check_keys(self, kind: str) -> None:
        given = {"schema" if name == "schema_file" else name for name in self.model_fields_set}
        for name in sorted(given - _EVERYWHERE - _KEYS[kind]):
            takes = ", ".join(sorted(_KEYS[kind])) or "none of its own"
            raise problem(
                "no-effect", f"a {self.format} sink has no {name} (its keys: {takes})", name, do="remove it"
            )
        for name, example in _REQUIRED.get(kind, ()):
            if name not in given:
                raise problem("missing-key", f"a {self.format} sink needs sink.{name}", do=f"add `{example}`")

    def _check_order(self) -> None:
        if self.ordered:
            return
        if self.publish == "direct":
            raise problem("no-effect", "direct publishing holds nothing back", "ordered", do="remove it")
        if self.mode != "append":
            raise problem(
                "contradiction",
                f"in mode: {self.mode} a slice that is released late would undo what came after it",
                "ordered",
                do="remove it: later slices wait behind a held one",
            )
        if self.format != "delta":
            raise problem(
                "contradiction",
                f"a {self.format} sink remembers only the last batch it was given",
                "ordered",
                do="remove it, or use delta",
            )

    def _check_columns(self, kind: str) -> None:
        if kind in _AUDITED and self.mode == "update" and not self.keys:
            raise problem("missing-key", "mode: update needs keys", "mode", do="add `keys: [...]`")
        if self.mode != "update" and self.keys:
            raise problem(
                "no-effect", f"mode: {self.mode} has no keys", "keys", do="remove them, or say mode: update"
            )
        for key in ("keys", "partition_by"):
            columns = [column.lower() for column in getattr(self, key)]
            if len(set(columns)) != len(columns):
                raise problem("contradiction", "a column stands twice", key, do="remove one of them")
