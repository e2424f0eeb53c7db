"""Paths in a log after its storage root was copied: the spelling that Spark gives them in the new one."""

from __future__ import annotations

import pytest

from drawdown.checkpoint.roots import is_below, moved, spellings


@pytest.mark.parametrize(
    ("uri", "old", "new", "expected"),
    [
        ("file:///old/landing/a.csv", "/old", "/new/place", "file:///new/place/landing/a.csv"),
        ("file:///old/landing/a.csv", "file:/old", "file:///new", "file:///new/landing/a.csv"),
        ("file:///old%20one/a%20b.csv", "/old one", "/néw #1", "file:///néw%20%231/a%20b.csv"),
        ("file:///old/day=a%252Fb/a.csv", "/old", "s3://bucket/root", "s3://bucket/root/day=a%252Fb/a.csv"),
        ("s3://bucket/root/a.csv", "s3://bucket/root", "/new", "file:///new/a.csv"),
        ("file:///older/a.csv", "/old", "/new", "file:///older/a.csv"),
    ],
)
def test_what_is_below_the_old_root_is_named_below_the_new(
    uri: str, old: str, new: str, expected: str
) -> None:
    assert moved(uri, old, new) == expected
    assert is_below(uri, old) == (uri != expected)
    assert is_below(expected, new) == (uri != expected)


def test_the_metastore_has_both_spellings_of_a_local_root() -> None:
    assert spellings("file:///old", "/new") == {("file:///old/", "/new/"), ("/old/", "/new/")}
    assert spellings("s3://a/b/", "s3://c") == {("s3://a/b/", "s3://c/")}
