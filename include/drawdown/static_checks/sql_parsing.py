"""SQL of a pipeline as sqlglot reads it, and what in it is certainly no SQL for Spark either."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import Token, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.parsers.spark import SparkParser

from drawdown.static_checks.sql_errors import broken, ends_early, is_certain, window_is_a_name

# Where sqlglot 30 knows less than Spark 4.2: what has one of these and does not parse is left to Spark.
_SPARK_KNOWS_MORE = re.compile(
    r"\|>|>>>|=>|/\*\+|!|\b(?:PIVOT|UNPIVOT|TABLESAMPLE|TRANSFORM|LATERAL|RECURSIVE|IDENTIFIER|WITHIN|COLLATE"
    r"|CLUSTER|DISTRIBUTE|GROUPING|SYSTEM_TIME|SYSTEM_VERSION|VERSION|STREAM|WATERMARK|INTERVAL|NATURAL|ANTI)\b"
    r"|\b[XBU]&?\s*'",
    re.IGNORECASE,
)
# How sqlglot ends on a text that it does not know: it has errors for some of them only.
GIVES_UP = (
    SqlglotError, RecursionError, ValueError, TypeError, AttributeError, KeyError, IndexError, AssertionError
)  # fmt: skip
_COMMANDS = (
    exp.Create, exp.Drop, exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Alter, exp.Set, exp.Use,
    exp.TruncateTable, exp.Describe, exp.Cache, exp.Uncache, exp.Refresh,
)  # fmt: skip


_STEPS_PER_TOKEN = 20
_STEPS = 2_000
"""sqlglot tries several readings of a call or a join and goes back for each: nested ones take it a time that
doubles with every level. The examples take it less than 2 steps for each word."""


class _TooManyStepsError(Exception):
    """The parser has gone on and back too often; it catches errors of its own alone."""


class _BoundedParser(SparkParser):
    """Gives up after a number of steps, so that no text keeps `validate` busy."""

    _steps_left = _STEPS

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        self._steps_left = _STEPS + _STEPS_PER_TOKEN * len(raw_tokens)
        return super().parse(raw_tokens, sql)

    def _advance(self, times: int = 1) -> None:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise _TooManyStepsError
        super()._advance(times)


@dataclass(frozen=True)
class NotSqlError(Exception):
    """What is wrong, and in which line of the text, from 1."""

    what: str
    line: int


def parse_query(text: str) -> exp.Expr | None:
    """The one query that a text holds; None when only Spark can tell what it is.

    Raises:
        NotSqlError: Spark would refuse it for sure.
    """
    tokens = _tokens(text)
    if wrong := broken(tokens):
        raise NotSqlError(*wrong)
    window_is_a_name(tokens)
    try:
        found = [each for each in _BoundedParser(dialect=Spark()).parse(tokens, text) if each is not None]
    except ParseError as error:
        if _SPARK_KNOWS_MORE.search(text) or not is_certain(error, tokens):
            return None
        raise _not_sql(error, text) from None
    except (_TooManyStepsError, *GIVES_UP):
        return None
    if not found:
        return None
    if len(found) > 1:
        raise NotSqlError(f"it holds {len(found)} statements, and a run takes one query", _last_line(text))
    if isinstance(found[0], _COMMANDS):
        raise NotSqlError(f"it is {found[0].key.upper()}, not a query", 1)
    return found[0]


def parse_condition(text: str) -> exp.Expr | None:
    """A query ``SELECT 1 FROM rows WHERE <text>``; None when only Spark can tell what it is.

    Raises:
        NotSqlError: Spark would refuse it for sure; lines are those of the condition.
    """
    if wrong := ends_early(_tokens(text)):
        raise NotSqlError(*wrong)
    try:
        return parse_query(f"SELECT 1 FROM `{ROWS}` WHERE (\n{text}\n)")  # noqa: S608  (read, never run)
    except NotSqlError as error:
        raise NotSqlError(error.what, min(max(error.line - 1, 1), text.count("\n") + 1)) from None


ROWS = "rows"
"""The name of the row in the query that a condition is put into."""


def line_of(node: exp.Expr) -> int:
    """The line of an expression, from 1."""
    for each in node.walk():
        if line := each.meta.get("line"):
            return int(line)
    return 1


def _tokens(text: str) -> list[Token]:
    try:
        tokens = Spark().tokenize(text)
    except TokenError:
        raise NotSqlError("a quote or a comment is not closed", _last_line(text)) from None
    if not tokens:
        raise NotSqlError("it holds no query", 1)
    return tokens


def _not_sql(error: ParseError, text: str) -> NotSqlError:
    first = error.errors[0] if error.errors else {}
    near = str(first.get("highlight") or "").strip()
    line = int(first.get("line") or _last_line(text))
    rest = str(first.get("end_context") or "").strip()
    if not near:
        return NotSqlError("the text ends too early", _last_line(text))
    return NotSqlError(f"it is no SQL from `{near[:40]}` on" + ("" if rest else ", its last word"), line)


def _last_line(text: str) -> int:
    return text.rstrip().count("\n") + 1
