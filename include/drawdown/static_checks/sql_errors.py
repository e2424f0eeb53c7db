"""What is wrong in the words of an SQL text whatever they mean, so that Spark refuses it, too.

Spark takes nearly every keyword for a name, so that sqlglot's word alone is no proof that a text is no SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import Token, TokenType
from sqlglot.errors import ParseError

_CLOSES = {
    TokenType.R_PAREN: TokenType.L_PAREN,
    TokenType.R_BRACKET: TokenType.L_BRACKET,
    TokenType.R_BRACE: TokenType.L_BRACE,
}
_OPERATORS = frozenset({TokenType.EQ, TokenType.GTE, TokenType.LTE, TokenType.DPIPE, TokenType.SLASH})
_CLAUSES = frozenset({TokenType.WHERE, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.HAVING})
_ASKING = frozenset({*_CLAUSES, TokenType.ON, TokenType.SELECT})
_STARTS = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE", "("})
# Words that only a command begins with; the plan says which.
_COMMANDS = frozenset({
    "ADD", "ALTER", "ANALYZE", "BEGIN", "CACHE", "CALL", "CLEAR", "CLONE", "COMMENT", "COMMIT", "CONVERT",
    "CREATE", "DECLARE", "DELETE", "DESC", "DESCRIBE", "DFS", "DROP", "EXECUTE", "EXPLAIN", "EXPORT",
    "GENERATE",
    "GRANT", "IMPORT", "INSERT", "LIST", "LOAD", "LOCK", "MERGE", "MSCK", "OPTIMIZE", "REFRESH", "REORG",
    "REPAIR", "REPLACE", "RESET", "RESTORE", "REVOKE", "ROLLBACK", "SET", "SHOW", "START", "SYNC", "TRUNCATE",
    "UNCACHE", "UNLOCK", "UPDATE", "USE", "VACUUM",
})  # fmt: skip
_PLAIN = frozenset({
    TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.COMMA, TokenType.DOT,
    TokenType.L_PAREN, TokenType.R_PAREN, TokenType.EQ, TokenType.STAR,
})  # fmt: skip


def window_is_a_name(tokens: Sequence[Token]) -> None:
    """Lets sqlglot read ``window(time, '1 hour')`` and ``window.start`` where it expects a WINDOW clause."""
    for index, token in enumerate(tokens):
        if token.token_type == TokenType.WINDOW:
            follows = [each.token_type for each in tokens[index + 1 : index + 3]]
            if not (len(follows) == 2 and follows[0] == TokenType.VAR and follows[1] == TokenType.ALIAS):
                token.token_type = TokenType.VAR


def broken(tokens: Sequence[Token]) -> tuple[str, int] | None:
    """The first thing that is wrong for sure, and its line."""
    return next(_broken(tokens), None)


def ends_early(tokens: Sequence[Token]) -> tuple[str, int] | None:
    """The word at the end of a condition that another one has to follow, and its line."""
    last = tokens[-1]
    wants_more = last.token_type in (TokenType.AND, TokenType.OR, TokenType.NOT, *_OPERATORS)
    return (f"`{last.text}` stands before the end", last.line) if wants_more else None


def is_certain(error: ParseError, tokens: Sequence[Token]) -> bool:
    """Whether Spark refuses it, too: nothing near the place is a keyword, which Spark may take for a name."""
    at = _position(error, tokens)
    if at is None:
        return False
    near = [each.token_type for each in tokens[max(at - 2, 0) : at + 1]]
    if set(near) <= _PLAIN:
        return True
    # An operand is missing at the end of a condition.
    last = at == len(tokens) - 1 and tokens[at].token_type in (TokenType.AND, TokenType.OR, *_OPERATORS)
    clauses = [each.token_type for each in tokens if each.token_type in _ASKING]
    return last and bool(clauses) and clauses[-1] in (TokenType.WHERE, TokenType.ON, TokenType.HAVING)


def _position(error: ParseError, tokens: Sequence[Token]) -> int | None:
    first = error.errors[0] if error.errors else {}
    place = first.get("line"), first.get("col")
    return next((index for index, each in enumerate(tokens) if (each.line, each.col) == place), None)


def _broken(tokens: Sequence[Token]) -> Iterator[tuple[str, int]]:
    first = tokens[0]
    if first.text.upper() not in _STARTS | _COMMANDS:
        yield f"it begins with `{first.text[:40]}`; a query begins with SELECT or WITH", first.line
    yield from _brackets(tokens)
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        kind = None if following is None else following.token_type
        if token.token_type == TokenType.COMMA and (kind in (None, TokenType.COMMA, TokenType.R_PAREN)):
            yield f"a comma stands before {_shown(following)}", token.line
        if token.token_type in _OPERATORS and (
            kind in (None, TokenType.COMMA, TokenType.R_PAREN, *_OPERATORS)
        ):
            yield f"`{token.text}` stands before {_shown(following)}", token.line
    yield from _commas_before_clauses(tokens)


def _commas_before_clauses(tokens: Sequence[Token]) -> Iterator[tuple[str, int]]:
    for index, token in enumerate(tokens[:-2]):
        clause, after = tokens[index + 1], tokens[index + 2]
        later = tokens[index + 3].token_type if index + 3 < len(tokens) else None
        if token.token_type != TokenType.COMMA:
            continue
        is_from = clause.token_type == TokenType.FROM and after.token_type in (
            TokenType.VAR,
            TokenType.L_PAREN,
        )
        if (is_from and later != TokenType.FROM) or clause.token_type in _CLAUSES:
            yield f"a comma stands before {_shown(clause)}", token.line


def _brackets(tokens: Sequence[Token]) -> Iterator[tuple[str, int]]:
    opened: list[Token] = []
    for token in tokens:
        if token.token_type in _CLOSES.values():
            opened.append(token)
        elif token.token_type in _CLOSES:
            if not opened or opened[-1].token_type != _CLOSES[token.token_type]:
                yield f"a `{token.text}` closes nothing", token.line
                return
            opened.pop()
    if opened:
        yield f"a `{opened[-1].text}` is not closed", opened[-1].line


def _shown(token: Token | None) -> str:
    return "the end" if token is None else f"`{token.text[:40]}`"
