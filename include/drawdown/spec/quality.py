"""quality.yaml: row rules at the source boundary, expectations on the slice and on the history of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, StringConstraints, model_validator

from drawdown.spec.history import HistoryExpectation
from drawdown.values.model import Line, Name, SpecModel, Sql, problem, without_variables

SqlText = Annotated[Sql, StringConstraints(min_length=1, max_length=10_000)]
ExpectationType = Annotated[str, StringConstraints(pattern=r"^expect_[a-z0-9_]{1,200}$")]


_COLUMN_KEYS = ("column", "column_A", "column_B")


def columns_named(kwargs: Mapping[str, Any]) -> list[str]:
    """Return the columns that an expectation's arguments name."""
    named = [kwargs[key] for key in _COLUMN_KEYS if key in kwargs]
    listed = kwargs.get("column_list")
    return [str(name) for name in [*named, *(listed if isinstance(listed, list) else [])]]


class Rule(SpecModel):
    """A check on every row of a streaming source. ``check`` is SQL that is true for a good row."""

    name: Name
    source: str | None = None
    check: SqlText
    on_fail: Literal["warn", "quarantine", "fail"]


class Expectation(SpecModel):
    """A Great Expectations expectation on the slice; ``kwargs`` are its own arguments."""

    type: ExpectationType
    kwargs: dict[str, JsonValue] = Field(default_factory=dict)
    severity: Literal["fail", "warn"] = "fail"
    name: Line | None = None

    @model_validator(mode="after")
    def _condition_has_no_variables(self) -> Expectation:
        if self.row_condition is not None:
            without_variables(self.row_condition, "kwargs", "row_condition")
        return self

    @property
    def row_condition(self) -> str | None:
        """Return the SQL that selects its rows; None if it covers all rows or the condition is not SQL."""
        condition = self.kwargs.get("row_condition")
        return (
            condition
            if isinstance(condition, str) and self.kwargs.get("condition_parser") == "spark"
            else None
        )

    @property
    def columns(self) -> list[str]:
        """Return its columns."""
        return columns_named(self.kwargs)

    @property
    def id(self) -> str:
        """Return the name, else type and columns; results are matched by it."""
        if self.name:
            return self.name
        about = [self.kwargs[key] for key in (*_COLUMN_KEYS, "column_list") if key in self.kwargs]
        return f"{self.type}({', '.join(map(str, about))})"


SLICE = "slice"
"""The table name of the audited rows in `queries:`."""


class SliceQuery(SpecModel):
    """SQL over ``slice`` and the static sources; every row that ``unexpected`` returns is an error."""

    name: Line
    unexpected: SqlText
    severity: Literal["fail", "warn"] = "fail"


class Quality(SpecModel):
    """All lists may be empty; then nothing is judged."""

    rules: list[Rule] = Field(default_factory=list)
    expectations: list[Expectation] = Field(default_factory=list)
    queries: list[SliceQuery] = Field(default_factory=list)
    history: list[HistoryExpectation] = Field(default_factory=list)

    @property
    def audits(self) -> bool:
        """Whether slices are audited at all."""
        return bool(self.expectations or self.queries or self.history)

    @model_validator(mode="after")
    def _names_are_unique(self) -> Quality:
        for key, names in (
            ("rules", [rule.name for rule in self.rules]),
            ("expectations", [expectation.id for expectation in self.expectations]),
            ("queries", [query.name for query in self.queries]),
            ("history", [expectation.id for expectation in self.history]),
        ):
            for name, times in Counter(names).items():
                if times > 1:
                    last = len(names) - 1 - names[::-1].index(name)
                    raise problem(
                        "duplicate-name",
                        f"{name!r} stands twice",
                        key,
                        last,
                        do="give it its own `name:`",
                    )
        return self
