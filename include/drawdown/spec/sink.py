"""The sink of a pipeline: where its rows go, how, and when readers see them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, PrivateAttr, model_validator

from drawdown.spec.model import Column, OptionValue, SpecModel, problem
from drawdown.spec.options import SinkFormat, check_names, sink_options
from drawdown.spec.paths import FolderFile, SinkPath

OutputMode = Literal["append", "update", "complete"]


class Sink(SpecModel):
    """The output. ``publish: audited`` (Delta only) shows rows after the audit, ``direct`` per batch."""

    format: SinkFormat
    path: SinkPath
    schema_file: FolderFile | None = Field(default=None, alias="schema")
    mode: OutputMode = "append"
    keys: list[Column] = Field(default_factory=list)
    time_column: Column | None = None
    publish: Literal["audited", "direct"] = "audited"
    partition_by: list[Column] = Field(default_factory=list)
    options: dict[str, OptionValue] = Field(default_factory=dict)

    _schema_ddl: str | None = PrivateAttr(default=None)

    @property
    def schema_ddl(self) -> str | None:
        """The text of the schema file; None when the sink declares none."""
        return self._schema_ddl

    @model_validator(mode="before")
    @classmethod
    def _files_are_published_direct(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("format") != "delta":
            return {"publish": "direct", **data}
        return data

    @model_validator(mode="after")
    def _says_one_thing(self) -> Sink:
        check_names(self.options, sink_options(self.format), "options")
        if self.format == "delta":
            if self.schema_file is None:
                raise problem("missing-key", "a delta sink needs a schema", do="add `schema: schemas/x.ddl`")
        else:
            self._check_files()
        if self.mode == "update" and not self.keys:
            raise problem("missing-key", "mode: update needs keys", "mode", do="add `keys: [...]`")
        if self.mode != "update" and self.keys:
            raise problem(
                "no-effect", f"mode: {self.mode} has no keys", "keys", do="remove them, or say mode: update"
            )
        for key in ("keys", "partition_by"):
            columns = [column.lower() for column in getattr(self, key)]
            if len(set(columns)) != len(columns):
                raise problem("contradiction", "a column stands twice", key, do="remove one of them")
        return self

    def _check_files(self) -> None:
        # Spark's file sink lists files in _spark_metadata with each batch: no later publishing, no updates.
        if self.publish != "direct":
            raise problem(
                "contradiction", f"{self.format} can only be published direct", "publish", do="say direct"
            )
        if self.mode != "append":
            raise problem(
                "contradiction",
                f"{self.format} can only be appended to",
                "mode",
                do="say append, or use delta",
            )
