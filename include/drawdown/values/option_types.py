"""What the value of an option of Spark's may be, as the classes that read it parse it (Spark 4.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass

# ASCII: Java reads no other digits.
_FLAGS = re.IGNORECASE | re.DOTALL | re.ASCII


@dataclass(frozen=True)
class OptionType:
    """A type of values.

    Attributes:
        must_be: what a value is, for errors.
        pattern: of the whole text, without regard to case.
        example: a value.
    """

    must_be: str
    pattern: str
    example: str

    def of(self, *names: str) -> dict[str, OptionType]:
        """Options of this type, by their names."""
        return dict.fromkeys(names, self)

    def takes(self, value: object) -> bool:
        """Whether Spark can read the value."""
        return re.fullmatch(self.pattern, str(value).strip(), _FLAGS) is not None


def buffer(digits: int) -> OptionType:
    """A size for which memory is taken before anything is read; -1 for none."""
    pattern = rf"-1|0{{0,18}}[1-9]\d{{0,{digits - 1}}}"
    return OptionType(f"a whole number up to {'9' * digits}", pattern, "20480")


def one_of(*words: str) -> OptionType:
    """One of some words."""
    return OptionType(f"{', '.join(words[:-1])} or {words[-1]}", "|".join(map(re.escape, words)), words[0])


TEXT = OptionType("text", ".*", "text")
FLAG = OptionType("true or false", "true|false", "true")
WHOLE = OptionType("a whole number", r"-?\d{1,18}", "20")
COUNT = OptionType("a whole number from 1", r"0{0,18}[1-9]\d{0,17}", "20")
RATIO = OptionType("a number from 0 to 1", r"0?\.\d{1,18}|0(\.\d{0,18})?|1(\.0{0,18})?", "0.3")
SIZE = OptionType("a size, for example 100m", r"[1-9]\d{0,17}([kmgtp]?b|[kmgtp])?", "100m")
DURATION = OptionType("a time, for example 7d or 12h", r"\d{1,18}\s{0,9}(us|ms|s|m|min|h|d)?", "12h")
VERSION = OptionType("a whole number or latest", r"\d{1,18}|latest", "12")
