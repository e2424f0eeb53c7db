"""A schema in a spec: a file beside pipeline.yaml, or the DDL itself (``id INT, name STRING``)."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from drawdown.values.paths import folder_file


def names_a_file(schema: str) -> bool:
    """Whether the text names a file: DDL has a space between name and type; a file name has none or ends in
    .ddl."""
    return schema.endswith(".ddl") or not any(char.isspace() for char in schema)


def _schema(text: str) -> str:
    return folder_file(text) if names_a_file(text) else text


SchemaText = Annotated[str, StringConstraints(min_length=1, max_length=100_000), AfterValidator(_schema)]
