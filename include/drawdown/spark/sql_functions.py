"""Which functions, options of functions and hints the SQL of a pipeline may use: sql_functions.toml, read.

It needs no Spark: ``drawdown validate`` names a refused function too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from drawdown.values.nearest import did_you_mean

_FILE = Path(__file__).with_suffix(".toml")
_TRANSFORM_PY = "for what SQL does not offer write transform.py"
RECURSION = 1000
"""The most levels that a recursive query may ask for by MAX RECURSION LEVEL; Spark's default is 100."""
GROUPS = 4096
"""The most sets that one GROUP BY may have, a CUBE of 12 columns: Spark's plan has a branch for each."""
_PARSED_AS = {
    "ExpressionWithUnresolvedIdentifier": "IDENTIFIER(...)",
    "NamedParameter": "a parameter (:name)",
    "PosParameter": "a parameter (?)",
}


@dataclass(frozen=True)
class SqlRefusal:
    """What in an SQL text is refused: an error's id, its predicate (``calls reflect, which ...``) and
    remedy."""

    id: str
    what: str
    do: str


@dataclass(frozen=True)
class FunctionOptions:
    """Where a function takes a map of options, from 0, and the options that it may be given."""

    at: int
    keys: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class FunctionSchema:
    """Where a function takes a schema or a type as text, from 0, and its form: ``ddl`` or ``avro``."""

    at: int
    form: str


@dataclass(frozen=True)
class SqlFunctions:
    """The lists.

    Attributes:
        scalar, tables: by name, of Spark's function registry and its table function registry, one of
            ``computes``, ``grows`` and ``reaches-out``.
        why, instead: by name, of both.
    """

    scalar: Mapping[str, str]
    tables: Mapping[str, str]
    why: Mapping[str, str]
    instead: Mapping[str, str]
    options: Mapping[str, FunctionOptions]
    schemas: Mapping[str, FunctionSchema]
    hints: frozenset[str]

    @property
    def allowed(self) -> frozenset[str]:
        return _without(self.scalar, "reaches-out")

    @property
    def allowed_tables(self) -> frozenset[str]:
        return _without(self.tables, "reaches-out")

    @property
    def growing(self) -> frozenset[str]:
        """Return the names of both registries that grow."""
        return frozenset(
            name for known in (self.scalar, self.tables) for name, kind in known.items() if kind == "grows"
        )

    def refusal(self, kind: str, name: str, more: str, partitions: int) -> SqlRefusal:
        """Return in words what drawdown.ParsedSql has found."""
        match kind:
            case "function" | "table":
                return self.refused_call(name, kind == "table")
            case "option":
                known = self.options[name]
                listed = ", ".join(known.keys) or "no options at all"
                return SqlRefusal(
                    "sql.option",
                    f"gives {name} the option {more}, which is not on the list",
                    f"remove it; {name} takes {listed}",
                )
            case "options":
                return SqlRefusal(
                    "sql.option",
                    f"gives {name} options that are not written out",
                    f"write the options of {name} as map('name', 'value', ...) with texts in quotes",
                )
            case "long-option":
                return SqlRefusal(
                    "sql.size",
                    f"gives {name} an option of more than 1000 characters",
                    "shorten it",
                )
            case "schema":
                return SqlRefusal(
                    "sql.schema",
                    f"gives {name} a schema that is no literal text of DDL",
                    f"write the schema of {name} as DDL in quotes, such as 'id INT, name STRING', or"
                    f" schema_of_json('...') with a literal; {_TRANSFORM_PY}",
                )
            case "avro":
                return SqlRefusal(
                    "sql.schema",
                    f"gives {name} a schema that is not written out",
                    f"write the Avro schema of {name} as a text in quotes; {_TRANSFORM_PY}",
                )
            case "large-schema":
                return SqlRefusal(
                    "sql.schema",
                    f"gives {name} a schema of more than 100 levels or 100,000 characters, or of Avro with"
                    " more than 10,000 fields once each name in it is written out",
                    f"parse the levels that you need; {_TRANSFORM_PY}",
                )
            case "named":
                return SqlRefusal(
                    "sql.function",
                    f"gives {name} an argument by its name (=>)",
                    f"write the arguments of {name} in their order: its size is checked",
                )
            case "hint":
                return SqlRefusal(
                    "sql.hint",
                    f"has the hint {name}, which is not on the list",
                    f"remove it; known hints: {', '.join(sorted(self.hints))}",
                )
            case "partitions":
                return SqlRefusal(
                    "sql.hint",
                    f"asks for {more} partitions by the hint {name}; the limit is {partitions}",
                    "ask for fewer, or raise `sql_limits: {partitions: ...}` in include/project.yaml",
                )
            case "groups":
                return SqlRefusal(
                    "sql.size",
                    f"groups by {more} sets, by CUBE, ROLLUP and GROUPING SETS; the limit is {GROUPS}",
                    "group by fewer columns, or write the sets that you need as GROUPING SETS ((a, b), (a))",
                )
            case "levels":
                return SqlRefusal(
                    "sql.hint",
                    f"asks for {more} levels of recursion in {name}; the limit is {RECURSION}",
                    f"write MAX RECURSION LEVEL {RECURSION} or less",
                )
        return SqlRefusal(
            "sql.syntax",
            f"uses {_PARSED_AS.get(name, name)}, which SQL of a pipeline may not",
            f"write names and values out; {_TRANSFORM_PY}",
        )

    def refused_call(self, name: str, table: bool = False) -> SqlRefusal:
        """Return why a function is refused."""
        known = self.tables if table else self.scalar
        if name in known:
            what, do = f"calls {name}, which {self.why[name]}", self.instead[name]
        else:
            what = f"calls {name}, which is not on the list of functions"
            near = did_you_mean(name, _without(known, "reaches-out"))
            do = f"{near} {_TRANSFORM_PY}" if near.startswith("did you mean") else _TRANSFORM_PY
        return SqlRefusal("sql.function", what, do)


@cache
def sql_functions() -> SqlFunctions:
    """Read the lists."""
    listed: dict[str, Any] = tomllib.loads(_FILE.read_text())
    scalar: dict[str, str] = {}
    tables: dict[str, str] = {}
    why: dict[str, str] = {}
    instead: dict[str, str] = {}
    for kind in ("computes", "grows", "reaches-out"):
        for group in listed[kind]:
            for names, of in ((group.get("names", ()), scalar), (group.get("tables", ()), tables)):
                for name in names:
                    if name in of:
                        raise ValueError(f"{_FILE}: {name} is listed twice")
                    of[name] = kind
                    why[name], instead[name] = group["why"], group.get("instead", _TRANSFORM_PY)
    options = {
        name: FunctionOptions(each["at"], tuple(each["keys"]), each["why"])
        for name, each in listed["options"].items()
    }
    schemas = {name: FunctionSchema(each["at"], each["form"]) for name, each in listed["schemas"].items()}
    hints = frozenset(listed["hints"]["joins"]) | frozenset(listed["hints"]["numbered"])
    return SqlFunctions(scalar, tables, why, instead, options, schemas, hints)


def _without(known: Mapping[str, str], kind: str) -> frozenset[str]:
    return frozenset(name for name, each in known.items() if each != kind)
