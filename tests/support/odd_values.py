"""Values that somebody may put into an address, an option or a request, by declared type and of any."""

from __future__ import annotations

import random
import string
from collections.abc import Sequence

TIMES = (
    "0001-01-01T00:00:00+14:00", "0001-01-01", "0001-01-01T00:00:00-14:00", "0000-01-01", "-0001-01-01",
    "9999-12-31T23:59:59.999999-14:00", "9999-12-31", "9999-12-31T24:00:00Z", "10000-01-01",
    "+262143-12-31", "1970-01-01", "1970-01-01T00:00:00+23:59:59", "2026-02-30", "2026-01-31T25:00:00Z",
    "2026-W01-1", "2026-01-31T00:00:00+24:00", "2026-01-31T00:00:00-00:00", "20260131T000000Z",
    "2026-01-31 ", "0", "-1", "1e400", "1e18", "253402300800", "-62135596801", "9" * 400, "NaN",
    "Infinity", "now", "\u0968\u0966\u0968\u096c-01-31", "2026-01-31T00:00:60Z", "1677-09-21T00:12:43Z",
    "2262-04-11T23:47:17Z", "0002-01-01", "9998-12-31",
)  # fmt: skip
NUMBERS = (
    "0", "-0", "1", "-1", "2", "20", "100", "1000", "1e3", "1e400", "-1e400", "NaN", "nan", "inf",
    "-Infinity", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
    "18446744073709551616", "9" * 30, "-" + "9" * 30, "9" * 4301, "1.0", "1.5", "0x10", "1_000",
    "\u0663", "\uff11\uff12", "\u00b2", "+1", " 1", "1 ", "true", "",
)  # fmt: skip
TEXTS = (
    "", " ", "\0", "a\0b", "\r\nX-Injected: 1", "\t", "null", "None", "undefined", "[]", "{}",
    '{"a": 1}', "%", "%%", "%s", "%00", "%2e%2e%2f", "{0}", "${HOME}", "{{ 7 * 7 }}", "..", "../..",
    "../../etc/passwd", "/", "//", "\\", "'", "\"", "`", "' OR 1=1 --", "<script>alert(1)</script>",
    "\ufffe", "\ufeff", "\u202e", "\x1b[31m", "\x7f", "\u00e9", "e\u0301", "\u65e5\u672c", "\U0001f600",
    "\U0001f3f3\ufe0f\u200d\U0001f308", "\u00df", "\u0130", "a" * 255, "a" * 256, "a" * 10_000,
    "\U0001f600" * 2_500, "../" * 3_000, "-", "--", "-1", ".", "*", "?", "#", "&", "=", ";", "+", ",",
    "true",
)  # fmt: skip
BYTES = (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf4\x90\x80\x80", b"\x80", b"a\xe2\x28")
"""No UTF-8: overlong forms, lone surrogates, what is beyond Unicode."""


def any_value(chance: random.Random, likely: Sequence[str]) -> bytes:
    """Return a value as bytes: half of the time a likely one, sometimes changed a little."""
    if chance.random() < 0.05:
        return chance.choice(BYTES)
    if chance.random() < 0.1:
        return _made(chance)
    pool = likely if likely and chance.random() < 0.6 else chance.choice((TIMES, NUMBERS, TEXTS))
    value = chance.choice(pool).encode("utf-8", "surrogatepass")
    return _changed(chance, value) if chance.random() < 0.15 else value


def any_text(chance: random.Random, likely: Sequence[str]) -> str:
    """Return such a value as a text, in which a lone surrogate stands for each byte that is no UTF-8."""
    return any_value(chance, likely).decode("utf-8", "surrogateescape")


def any_time(chance: random.Random) -> str:
    """Return a time between the years 1 and 9999, nearer to both ends than chance would have it."""
    year = chance.choice((1, 2, 9, 99, 999, 1582, 1900, 1969, 1970, 2026, 2038, 9990, 9998, 9999))
    year = chance.randint(1, 9999) if chance.random() < 0.3 else year
    at = f"{year:04}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}T{chance.randint(0, 23):02}:00:00"
    return at + chance.choice(("", "Z", "+14:00", "-14:00", "+23:59", "-23:59", ".999999Z", "+00:00"))


def _made(chance: random.Random) -> bytes:
    letters = string.printable + "\0\u00e9\u00df\u00b2\u0663\u65e5\U0001f600\u202e\u0301"
    return "".join(chance.choices(letters, k=chance.randint(0, 40))).encode()


def _changed(chance: random.Random, value: bytes) -> bytes:
    at = chance.randint(0, len(value))
    return value[:at] + chance.choice((b"", b"\0", b"-", b"9", b" ", b"\xff", b"%", b"Z")) + value[at + 1 :]
