"""YAML is read as plain data: every key with its line, and nothing that YAML could do beyond."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.spec.reading.yaml_source import parse, read_text, scalar


def test_every_key_and_item_has_its_line() -> None:
    document = parse("a:\n  b: 1\n  c:\n    - x\n    - y: 2\n", "f.yaml")
    assert document.data == {"a": {"b": 1, "c": ["x", {"y": 2}]}}
    assert document.where(("a", "c", 1, "y")) == "f.yaml:5"
    assert document.where(("a", "b", "below", "what", "is", "known")) == "f.yaml:2"
    assert document.where(("absent",)) == "f.yaml:1"


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("true", True), ("null", None), ("~", None), ("", None), ("12", 12), ("-3", -3), ("1.5", 1.5),
        ("1.5e3", 1500.0),
        ("NO", "NO"), ("yes", "yes"), ("off", "off"), ("12:30", "12:30"), ("2013-01-01", "2013-01-01"),
        ("0x1F", "0x1F"),
        (".inf", ".inf"), (".nan", ".nan"), ("9" * 5000, "9" * 5000), ("1.0e999", "1.0e999"), ("1_000",
        "1_000"),
        ("-", "-"), ("\u0661", "\u0661"), ("1.4.2", "1.4.2"), ("=", "="), ("<<", "<<"),
    ],
)  # fmt: skip
def test_an_unquoted_scalar_is_what_a_reader_takes_it_for(text: str, meaning: object) -> None:
    assert scalar(text) == meaning
    assert type(scalar(text)) is type(meaning)


def test_quotes_keep_text() -> None:
    assert parse("a: '5'\nb: \"true\"\n", "f").data == {"a": "5", "b": "true"}


def test_a_duplicate_key_names_the_first_one() -> None:
    with pytest.raises(SpecError, match="first in line 1"):
        parse("a: 1\nb: 2\na: 3\n", "f.yaml")


def test_what_is_not_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(SpecError) as caught:
        read_text(file, "f.yaml")
    assert (caught.value.id, caught.value.where) == ("spec.not-utf8", "f.yaml:2")
