"""The DDL of a schema (``id INT, name STRING``) read without Spark: names and types of its columns.

Words come from sqlglot's tokenizer for Spark; what they may be is Spark 4.2's rule for a list of columns
(`singleTableSchema` of SqlBaseParser.g4), with the texts that ``StructType.fromDDL`` takes beside it. A test
gives both the same texts and compares. What only a running Spark knows is taken as it is: names of collations
and of spatial references.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn, TypeVar

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from drawdown.values.column import Column
from drawdown.values.nearest import did_you_mean

_SIMPLE = {
    "BOOLEAN": "boolean", "TINYINT": "tinyint", "BYTE": "tinyint", "SMALLINT": "smallint",
    "SHORT": "smallint", "INT": "int", "INTEGER": "int", "BIGINT": "bigint", "LONG": "bigint",
    "FLOAT": "float", "REAL": "float", "DOUBLE": "double", "DATE": "date", "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp", "TIMESTAMP_NTZ": "timestamp_ntz", "STRING": "string", "BINARY": "binary",
    "VOID": "void", "VARIANT": "variant",
}  # fmt: skip
_DECIMAL = frozenset({"DECIMAL", "DEC", "NUMERIC"})
_TEXT = {"CHAR": "char", "CHARACTER": "char", "VARCHAR": "varchar"}
_SPATIAL = frozenset({"GEOMETRY", "GEOGRAPHY"})
_TYPES = frozenset({*_SIMPLE, *_DECIMAL, *_TEXT, *_SPATIAL, "TIME", "INTERVAL", "ARRAY", "MAP", "STRUCT"})
# What other databases call them.
_ELSEWHERE = {
    "TEXT": "STRING", "NVARCHAR": "VARCHAR", "CLOB": "STRING", "UUID": "STRING", "JSON": "VARIANT or STRING",
    "JSONB": "VARIANT or STRING", "BOOL": "BOOLEAN", "BIT": "BOOLEAN", "DATETIME": "TIMESTAMP",
    "TIMESTAMPTZ": "TIMESTAMP", "NUMBER": "DECIMAL(p, s)", "INT4": "INT", "INT8": "BIGINT",
    "INT16": "SMALLINT", "INT32": "INT", "INT64": "BIGINT", "FLOAT4": "FLOAT", "FLOAT8": "DOUBLE",
    "FLOAT32": "FLOAT", "FLOAT64": "DOUBLE", "BYTES": "BINARY", "VARBINARY": "BINARY", "BLOB": "BINARY",
    "BYTEA": "BINARY", "SERIAL": "INT", "OBJECT": "STRUCT<...>",
}  # fmt: skip
_UNITS = ("YEAR", "MONTH"), ("DAY", "HOUR", "MINUTE", "SECOND")
_WORD = re.compile(r"[A-Za-z0-9_]+")
_NUMBER = re.compile(r"[0-9]+")
_DEEPEST = 100
_SPACES = re.compile(r"[^\S\n]")
_T = TypeVar("_T")


class NotDdlError(Exception):
    """A text is no list of columns: what is wrong, in which line of it, and what to do."""

    def __init__(self, what: str, line: int, do: str = "write `name TYPE, name TYPE`") -> None:
        super().__init__(what)
        self.what, self.line, self.do = what, line, do


def columns(ddl: str) -> list[Column]:
    """The columns of a schema in their order; of an empty text none.

    Raises:
        NotDdlError: Spark would not read it.
    """
    tokens = _tokens(ddl)
    if not tokens:
        if ddl.strip():
            raise NotDdlError("it holds a comment and no column", 1)
        return []
    try:
        return _DdlReader(tokens).whole(_DdlReader.table)
    except NotDdlError as error:
        # A text may also be one type, such as STRUCT<id: INT>, whose fields are then the columns.
        if tokens[0].text.upper() == "STRUCT" and tokens[1:] and tokens[1].text in ("<", "<>"):
            return _DdlReader(tokens).whole(_DdlReader.fields_of_a_struct)
        raise _single_type(tokens) or error from None


def first_twice(found: Sequence[Column]) -> Column | None:
    """The first column whose name stands twice; Spark tells names apart without regard to case."""
    seen: set[str] = set()
    for each in found:
        if each.name.lower() in seen:
            return each
        seen.add(each.name.lower())
    return None


def _tokens(ddl: str) -> list[Token]:
    # Spark takes any space of Unicode between words; lines stay what they are.
    try:
        return [part for token in Spark().tokenize(_SPACES.sub(" ", ddl)) for part in _parts(token)]
    except TokenError:
        opened = "a comment /*" if ddl.rfind("/*") > ddl.rfind("*/") else "a quote"
        line = max(ddl.rfind(mark) for mark in ("/*", "'", '"', "`"))
        raise NotDdlError(
            f"{opened} is not closed", ddl.count("\n", 0, max(line, 0)) + 1, "close it"
        ) from None


def _parts(token: Token) -> Iterator[Token]:
    """sqlglot makes one token of some words that belong together elsewhere, such as DOUBLE PRECISION."""
    if token.token_type in (TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER):
        yield token
        return
    for text in token.text.split():
        yield Token(token.token_type, text, token.line, token.col, token.start, token.end)


def _single_type(tokens: list[Token]) -> NotDdlError | None:
    try:
        found = _DdlReader(tokens).whole(_DdlReader.type)
    except NotDdlError:
        return None
    return NotDdlError(f"it is a single type, {found}, not a list of columns", tokens[0].line)


class _DdlReader:
    """Reads the tokens of one text from left to right."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._column = ""

    def whole(self, part: Callable[[_DdlReader], _T]) -> _T:
        """One part that is the whole text."""
        found = part(self)
        if self._at < len(self._tokens):
            self._fail(f"{self._shown} cannot stand here; a comma or the end should follow")
        return found

    def table(self) -> list[Column]:
        found = [self._field()]
        while self._take(","):
            found.append(self._field())
        return found

    def fields_of_a_struct(self) -> list[Column]:
        self._take("STRUCT")
        return self._fields()

    def type(self) -> str:
        """A type, as Spark's simpleString."""
        if self._depth > _DEEPEST:
            self._fail(f"types are nested deeper than {_DEEPEST}")
        token = self._next
        word = "" if token is None or not _is_plain(token) else token.text.upper()
        if token is None or not word:
            if token is not None and token.token_type == TokenType.IDENTIFIER:
                self._unknown_type(token.text)
            self._fail(f"{self._shown} stands where a type is expected")
        if word not in _TYPES:
            self._unknown_type(token.text)
        self._at += 1
        self._depth += 1
        found = self._known_type(word)
        self._depth -= 1
        return found

    def _known_type(self, word: str) -> str:
        if word == "ARRAY":
            return f"array<{self._between_angles(1)[0]}>"
        if word == "MAP":
            return "map<{},{}>".format(*self._between_angles(2))
        if word == "STRUCT":
            return "struct<" + ",".join(f"{f.name}:{f.type}" for f in self._fields()) + ">"
        if word == "INTERVAL":
            return self._interval()
        return self._with_arguments(word)

    def _with_arguments(self, word: str) -> str:
        given = self._arguments(word)
        if word in _TEXT:
            if len(given) != 1:
                self._fail(f"{word} needs a length, such as {word}(10)", back=True)
            self._collation()
            return f"{_TEXT[word]}({given[0]})"
        if word in _DECIMAL:
            return self._decimal(given)
        if word in _SPATIAL:
            if len(given) != 1:
                self._fail(f"{word} needs a reference system, such as {word}(4326)", back=True)
            return f"{word.lower()}({given[0].lower()})"
        if word == "TIME":
            if len(given) > 1 or (given and int(given[0]) > 6):
                self._fail("TIME takes a precision from 0 to 6", back=True)
            self._zone(("WITHOUT", "TIME", "ZONE"))
            return f"time({given[0] if given else 6})"
        if given:
            self._fail(f"{word} takes nothing in brackets", back=True)
        if word == "TIMESTAMP":
            if self._zone(("WITHOUT", "TIME", "ZONE")):
                return "timestamp_ntz"
            self._zone(("WITH", "LOCAL", "TIME", "ZONE"))
        collation = self._collation() if word == "STRING" else ""
        return _SIMPLE[word] + collation

    def _decimal(self, given: list[str]) -> str:
        if len(given) > 2:
            self._fail("DECIMAL takes a precision and a scale", back=True)
        precision, scale = (*map(int, given), 0)[:2] if given else (10, 0)
        if precision > 38:
            self._fail(f"DECIMAL has at most 38 digits, not {precision}", back=True)
        if scale > precision:
            self._fail(f"DECIMAL({precision}, {scale}) has more decimals than digits", back=True)
        return f"decimal({precision},{scale})"

    def _interval(self) -> str:
        for units in _UNITS:
            for index, start in enumerate(units):
                if not self._take(start):
                    continue
                if not self._take("TO"):
                    return f"interval {start.lower()}"
                for end in units[index + 1 :]:
                    if self._take(end):
                        return f"interval {start.lower()} to {end.lower()}"
                self._fail(f"no interval goes from {start} to {self._shown}")
        return "interval"

    def _arguments(self, word: str) -> list[str]:
        if not self._take("("):
            return []
        found = []
        while True:
            token = self._next
            is_any = word in _SPATIAL and token is not None and token.text.upper() == "ANY"
            if token is None or not ((_NUMBER.fullmatch(token.text) and _is_plain(token)) or is_any):
                self._fail(f"{self._shown} stands where {word} expects a whole number")
            if len(token.text) > 9:
                self._fail(f"{token.text} is too large")
            found.append(token.text)
            self._at += 1
            if self._take(")"):
                return found
            self._expect(",")

    def _collation(self) -> str:
        if not self._take("COLLATE"):
            return ""
        name = self._name()
        while self._take("."):
            name = self._name()
        return "" if name.upper() == "UTF8_BINARY" else f" collate {name}"

    def _zone(self, words: tuple[str, ...]) -> bool:
        ahead = [token.text.upper() for token in self._tokens[self._at : self._at + len(words)]]
        if ahead != list(words):
            return False
        self._at += len(words)
        return True

    def _between_angles(self, count: int) -> list[str]:
        self._expect("<")
        found = [self.type()]
        while len(found) < count:
            self._expect(",")
            found.append(self.type())
        self._expect(">")
        return found

    def _fields(self) -> list[Column]:
        if self._take("<>"):
            return []
        self._expect("<")
        if self._take(">"):
            return []
        found = self.table()
        self._expect(">")
        return found

    def _field(self) -> Column:
        line = self._line
        outer, self._column = self._column, self._name()
        name = self._column
        self._take(":")
        kind = self.type()
        if self._take("NOT"):
            self._expect("NULL")
        if self._take("COMMENT"):
            self._comment()
        self._column = outer
        return Column(name, kind, line)

    def _comment(self) -> None:
        start = self._at
        while self._next is not None and self._next.token_type in (TokenType.STRING, TokenType.RAW_STRING):
            self._at += 1
        if self._at == start:
            self._fail(f"{self._shown} stands where the text of a COMMENT is expected, in quotes")

    def _name(self) -> str:
        token = self._next
        if token is None:
            self._fail("the text ends where a column is expected")
        if token.token_type == TokenType.IDENTIFIER:
            self._at += 1
            return token.text
        if not _is_plain(token) or not token.text.replace("-", "").strip():
            self._fail(f"{self._shown} stands where the name of a column is expected")
        if _NUMBER.fullmatch(token.text) or token.token_type == TokenType.NUMBER:
            self._fail(f"{token.text} is a number, not the name of a column")
        if not _WORD.fullmatch(token.text):
            self._fail(f"the name {token.text} must stand in backquotes: `{token.text}`")
        self._at += 1
        if token.text.upper() == "IDENTIFIER" and self._take("("):
            return self._spelled()
        return token.text

    def _spelled(self) -> str:
        """The name in IDENTIFIER('name')."""
        token = self._next
        if token is None or token.token_type != TokenType.STRING:
            self._fail(f"{self._shown} stands where a name in quotes is expected")
        self._at += 1
        self._expect(")")
        return token.text

    @property
    def _next(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    @property
    def _line(self) -> int:
        return self._tokens[min(self._at, len(self._tokens) - 1)].line

    @property
    def _shown(self) -> str:
        return "the end" if self._next is None else f"`{self._next.text[:40]}`"

    def _take(self, text: str) -> bool:
        token = self._next
        if token is None or not (_is_plain(token) and token.text.upper() == text):
            return False
        self._at += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._take(text):
            self._fail(f"{self._shown} stands where `{text}` is expected")

    def _unknown_type(self, word: str) -> NoReturn:
        if instead := _ELSEWHERE.get(word.upper()):
            self._fail(f"`{word[:40]}` is no type of Spark", f"Spark calls it {instead}")
        known = did_you_mean(word, sorted(_TYPES - {"DEC", "BYTE", "LONG", "SHORT", "REAL", "CHARACTER"}))
        self._fail(f"`{word[:40]}` is no type of Spark; {known}", "correct the type")

    def _fail(self, what: str, do: str = "write `name TYPE, name TYPE`", back: bool = False) -> NoReturn:
        """``back``: the cause has just been read."""
        line = self._tokens[self._at - 1].line if back else self._line
        raise NotDdlError(f"column {self._column}: {what}" if self._column else what, line, do)


def _is_plain(token: Token) -> bool:
    return token.token_type not in (TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER)
