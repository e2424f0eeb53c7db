"""Calls of functions that SQL of a pipeline may not make, as far as the words of a text show them.

The plan refuses more (spark/sql_checks.py): it has Spark's own parser.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from drawdown.errors import SpecError
from drawdown.spark.sql_functions import SqlRefusal, sql_functions

_QUOTED = (TokenType.STRING, TokenType.RAW_STRING, TokenType.NUMBER)


def refused_calls(text: str) -> Iterator[tuple[SqlRefusal, int]]:
    """Yield each call of a function that reaches out, with its line in the text, from 1."""
    known = sql_functions()
    try:
        tokens = Spark().tokenize(text)
    except TokenError:
        return
    for before, token, after in zip([None, *tokens], tokens, tokens[1:], strict=False):
        if after.token_type != TokenType.L_PAREN or token.token_type in _QUOTED:
            continue
        if before is not None and before.token_type == TokenType.ALIAS:
            continue
        name = token.text.lower()
        if known.scalar.get(name) == "reaches-out":
            yield known.refused_call(name), token.line
        elif known.tables.get(name) == "reaches-out":
            yield known.refused_call(name, table=True), token.line


def refused_condition(owner: str, text: str, where: str) -> Iterator[SpecError]:
    """Yield ``sql.reaches-out`` for each of them in a text of quality.yaml."""
    for refusal, _ in refused_calls(text):
        yield SpecError("sql.reaches-out", f"{owner} {refusal.what}", where=where, do=refusal.do)
