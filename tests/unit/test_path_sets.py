"""Sets of paths are compared as a listing of every possible path would compare them."""

from __future__ import annotations

import re
import time
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from drawdown.spec import Source
from drawdown.values import path_sets
from drawdown.values.globs import Glob, TooManyPatterns, expand, meets
from drawdown.values.path_sets import PathSet

LETTERS = "ab-"
NAMES = ["".join(letters) for length in (1, 2) for letters in product(LETTERS, repeat=length)]
PATHS = [*NAMES, *("/".join(both) for both in product(NAMES, NAMES))]
"""Every path of at most two names of at most two letters."""
DEEPER = [*PATHS, *(f"{path}/a" for path in PATHS if path.count("/") == 1)]

NAME = re.compile(r"\[.*?\]|.")
"""One letter of a name, as a pattern says it."""

part = st.sampled_from(
    [
        "a",
        "b",
        "-",
        "*",
        "?",
        "[ab]",
        "[a-b]",
        "[^a]",
        "[!b]",
        "[-a]",
        "{a,b}",
        "{a,}",
        "{ab,{b,a*}}",
        "{b/a,a}",
    ]
)
name = st.lists(part, min_size=1, max_size=3).map("".join)
pattern = st.lists(name, min_size=1, max_size=2).map("/".join)


def matched(pattern: str, paths: list[str]) -> set[str]:
    """The paths that Hadoop's rules find, each pattern expanded and tried on each path."""
    found = set()
    for glob in Glob.parse(pattern):
        for path in paths:
            below = path.removeprefix(glob.prefix).strip("/") if glob.prefix else path
            inside = not glob.prefix or path == glob.prefix or path.startswith(f"{glob.prefix}/")
            if inside and glob.matches(tuple(below.split("/")) if below else ()):
                found.add(path)
    return found


def near(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


@pytest.mark.capability("SAFE-04")
@settings(max_examples=80, deadline=None)
@given(pattern, pattern)
def test_two_patterns_meet_when_paths_of_theirs_do(one: str, other: str) -> None:
    expected = any(near(a, b) for a in matched(one, PATHS) for b in matched(other, PATHS))
    met = PathSet.of("/root", one).meets(PathSet.of("/root", other))
    # Longer names than the listing has may meet too; what it shows is never missed.
    assert met or not expected
    assert met == PathSet.of("/root", other).meets(PathSet.of("/root", one))


@pytest.mark.capability("SAFE-04")
@settings(max_examples=80, deadline=None)
@given(pattern, st.sampled_from(PATHS))
def test_a_pattern_meets_a_place_exactly_when_a_path_of_its_does(one: str, place: str) -> None:
    expected = any(near(a, place) for a in matched(one, DEEPER))
    met = PathSet.of("/root", one).meets(PathSet.one(f"/root/{place}"))
    assert met or not expected
    if not any(mark in one for mark in "*{") and all(len(NAME.findall(each)) < 3 for each in one.split("/")):
        assert met == expected


@pytest.mark.capability("SAFE-04")
@settings(max_examples=80, deadline=None)
@given(pattern, st.lists(st.sampled_from(PATHS), min_size=1, max_size=3))
def test_a_pattern_is_within_folders_only_when_all_its_paths_are(one: str, folders: list[str]) -> None:
    within = PathSet.of("/root", one).is_within([f"/root/{folder}" for folder in folders])
    outside = {p for p in matched(one, DEEPER) if not any(f"{p}/".startswith(f"{f}/") for f in folders)}
    assert not (within and outside)


@pytest.mark.capability("SAFE-04")
@pytest.mark.parametrize(
    ("pattern", "folders", "expected"),
    [
        ("landing/rows", ["landing"], True),
        ("landing", ["landing"], True),
        ("landing/{east,west}/2024-*", ["landing"], True),
        ("{landing,incoming}/rows", ["landing", "incoming"], True),
        ("{landing/a,incoming/b}", ["landing", "incoming"], True),
        ("landin[g]/x", ["landing"], True),
        ("{landing,incoming}/rows", ["landing"], False),
        ("landing?/rows", ["landing"], False),
        ("landings", ["landing"], False),
        ("*/rows", ["landing"], False),
        ("land", ["landing"], False),
        ("landing/rows", [], False),
        ("landing/[", ["landing"], True),
    ],
)
def test_what_is_within(pattern: str, folders: list[str], expected: bool) -> None:
    assert PathSet.of("/root", pattern).is_within([f"/root/{f}" for f in folders]) is expected


@pytest.mark.capability("SAFE-04")
@pytest.mark.parametrize(
    "pattern",
    ["_drawdow?/x", "_drawdow[_-z]/x", "{a,_draw*}", "*", "[^a]*/x", "{x/y,_drawdown/z}", "_dr[{]x"],
)
def test_what_can_be_the_folder_of_checkpoints(pattern: str) -> None:
    assert PathSet.of("s3a://bucket", pattern).meets(PathSet.one("s3a://bucket/_drawdown"))


@pytest.mark.capability("SAFE-04")
def test_a_pattern_that_is_made_to_be_slow_is_taken_to_meet() -> None:
    slow = "*a?*" * 200
    assert PathSet.of("/root", slow).meets(PathSet.of("/root", "*b?*" * 200))
    braces = "{a,b,c/d}" * 60
    assert PathSet.of("/root", braces).meets(PathSet.of("/root", braces))


@pytest.mark.capability("SAFE-04")
@pytest.mark.parametrize("part", ["*a", "*" + "b" * 40, "{a,b,c/d}", "[ab]?*", "{" * 4, "{a,{b,*}}"])
def test_patterns_that_are_made_to_be_slow_are_compared_in_few_steps(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, meets = 0, path_sets._Chars.meets

    def counted(one: path_sets._Chars, other: path_sets._Chars) -> bool:
        nonlocal steps
        steps += 1
        return meets(one, other)

    monkeypatch.setattr(path_sets._Chars, "meets", counted)
    patterns = [PathSet.of("/root", f"landing/{part * 100}{number}") for number in range(12)]
    assert all(one.meets(other) for one in patterns for other in patterns)
    assert steps < 12 * 1_000
    steps = 0
    ends = [PathSet.of("/root", f"ends/{part * 8}{number}") for number in range(12)]
    assert [one.meets(other) for one, other in pairwise(ends)]
    assert steps < 11 * 4 * 2_500
    assert ends[0].meets(PathSet.one("/root/landing")) is False


@pytest.mark.capability("SAFE-04")
def test_what_a_pattern_stands_for_is_bounded() -> None:
    regions = "{" + ",".join(f"region{number}/in" for number in range(100)) + "}"
    assert len(expand(f"{regions}/{{a/b,c}}")) == 200
    for pattern in (f"{regions}/{regions}", "{a/,b}" * 100, "{" * 400 + "a/b" + "}" * 400 + regions * 3):
        with pytest.raises(TooManyPatterns):
            expand(pattern)
    slow = ("{" + "a," * 49 + "a/b}") * 4
    for more in ({"path": slow}, {"path": "in", "options": {"pathGlobFilter": slow}}):
        with pytest.raises(ValidationError, match="stand for too many paths"):
            Source(**{"format": "json", "schema": "id INT", **more})


@pytest.mark.capability("SAFE-04")
@pytest.mark.parametrize("name", ["*a" * 30 + "b", "{a,aa}" * 9 + "b", "{*a,*aa}" * 9 + "b", "?*" * 30 + "b"])
def test_a_name_is_matched_in_one_go_whoever_chose_the_pattern(name: str) -> None:
    """An archive is compared with its source's path when the spec is read, by every parser of DAGs."""
    started = time.monotonic()
    assert not Glob.parse(name)[0].matches_name("a" * 60)
    options = {"cleanSource": "archive", "sourceArchiveDir": "landing/" + "a" * 60}
    Source(**{"format": "json", "schema": "id INT", "path": f"landing/{name}", "options": options})
    assert not meets(f"landing/{name}", "landing/" + "a" * 60)
    assert time.monotonic() - started < 5


@pytest.mark.capability("SAFE-04")
@pytest.mark.parametrize(
    ("name", "said"), [("[z-a]", "is no pattern"), ("{a,b}" * 20, "stand for too many names")]
)
def test_a_name_that_is_no_pattern_is_an_error_of_its_spec(name: str, said: str) -> None:
    for more in ({"path": f"in/{name}"}, {"path": "in", "options": {"pathGlobFilter": name}}):
        with pytest.raises(ValidationError, match=said):
            Source(**{"format": "json", "schema": "id INT", **more})
