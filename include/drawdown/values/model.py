"""The base of every spec model: strict, frozen, unknown keys refused; and how a check reports a problem."""

from __future__ import annotations

import re
from typing import Annotated, Any, LiteralString

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError


class SpecModel(BaseModel):
    """What stands in one mapping of a spec file. ``hide_input_in_errors``: a value may be a secret."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True)


def problem(kind: LiteralString, what: str, *at: str | int, do: str = "") -> PydanticCustomError:
    """A validator raises this; it becomes a SpecError with the id ``spec.<kind>``.

    ``at`` is the path of keys below the model that is being validated, so that the error names the
    line of the key and not only that of its mapping. ``do`` is the next step for the user.
    """
    return PydanticCustomError(kind, "{what}", {"what": what, "at": at, "do": do})


def _one_scalar(value: Any) -> Any:
    if isinstance(value, str | int | float | bool):
        return value
    raise problem(
        "wrong-type", "must be text, a number, true or false", do="give one value, in quotes if in doubt"
    )


# The value of an option of Spark: it is passed on as text, in Spark's own spelling.
OptionValue = Annotated[str | int | float | bool, BeforeValidator(_one_scalar)]
# Pipelines, groups and sources: they become folder, table, view and task names.
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
# A column, usable in SQL without quotes.
Column = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,254}$")]
# One line of text for people.
Line = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,500}$")]
# A variable of the environment that is empty is as good as none.
EmptyIsNone = BeforeValidator(lambda value: None if value == "" else value)
OptionalLine = Annotated[Line | None, EmptyIsNone]

# Ids of users as Airflow's auth manager gives them.
Approvers = Annotated[list[Line], Field(max_length=100)]


NO_VARIABLES = "write the value itself; text that has these two characters is concat('$', '{')"
"""What to do about SQL in which Spark would put variables of the driver: ``${env:NAME}``."""


def without_variables(sql: str, *at: str | int) -> str:
    """The SQL itself. Raises a problem, which becomes ``spec.sql-variable``."""
    if "${" in sql:
        raise problem("sql-variable", "SQL takes no variables: it holds `${`", *at, do=NO_VARIABLES)
    return sql


Sql = Annotated[str, AfterValidator(lambda sql: without_variables(sql))]


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value) else value


# A value of the environment is text.
NumberFromText = BeforeValidator(_number)
