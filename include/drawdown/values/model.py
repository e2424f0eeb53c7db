"""The base of every spec model: strict, frozen, unknown keys refused; and how a check reports a problem."""

from __future__ import annotations

import re
from typing import Annotated, Any, LiteralString

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError


class SpecModel(BaseModel):
    """One mapping of a spec file. ``hide_input_in_errors``: a value may be a secret.

    ``defer_build``: a command that reads only the project does not wait for the models of pipelines.
    """

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True
    )


def problem(kind: LiteralString, what: str, *at: str | int, do: str = "") -> PydanticCustomError:
    """Return the exception for a validator to raise; it becomes a SpecError with id ``spec.<kind>``.

    ``at`` is the path of keys below the model that is being validated, so that the error names the key's own
    line, not only that of its mapping. ``do`` is the next step for the user.
    """
    return PydanticCustomError(kind, "{what}", {"what": what, "at": at, "do": do})


def _one_scalar(value: Any) -> Any:
    if isinstance(value, str | int | float | bool):
        return value
    raise problem(
        "wrong-type", "must be text, a number, true or false", do="give one value, in quotes if in doubt"
    )


# The value of a Spark option, passed on as text in Spark's spelling.
OptionValue = Annotated[str | int | float | bool, BeforeValidator(_one_scalar)]
# Names of pipelines, groups and sources: they become folder, table, view and task names.
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
# A column name that SQL accepts without quotes.
Column = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,254}$")]
# One line of text for people.
Line = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,500}$")]
# An empty environment variable counts as missing.
EmptyIsNone = BeforeValidator(lambda value: None if value == "" else value)
OptionalLine = Annotated[Line | None, EmptyIsNone]

# User ids from Airflow's auth manager.
Approvers = Annotated[list[Line], Field(max_length=100)]


NO_VARIABLES = "write the value itself; text that has these two characters is concat('$', '{')"
"""The remedy for SQL in which Spark would substitute driver variables: ``${env:NAME}``."""


def without_variables(sql: str, *at: str | int) -> str:
    """Return the SQL unchanged; raises a problem that becomes ``spec.sql-variable``."""
    if "${" in sql:
        raise problem(
            "sql-variable", "variables are not allowed in SQL: it contains `${`", *at, do=NO_VARIABLES
        )
    return sql


Sql = Annotated[str, AfterValidator(lambda sql: without_variables(sql))]


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value) else value


# Environment values are text.
NumberFromText = BeforeValidator(_number)
