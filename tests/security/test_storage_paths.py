"""No path, pattern or link that a user can write leads out of the storage root."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import launch_gateway

from drawdown.errors import RefusedError
from drawdown.storage import Storage, containment
from drawdown.values.globs import expand

SLOW = "{" + "a," * 49 + "a/b}"
ESCAPES = [
    "..",
    "../x",
    "a/../../x",
    "a/..",
    "/etc/passwd",
    "//etc/passwd",
    "~/x",
    "~root",
    "file:///etc/passwd",
    "s3a://other/x",
    "hdfs:x",
    "{a,../../etc}/x",
    "a/{b/..,c}/../x",
    "\\.\\./x",
    "a\\/../x",
    "a\x00b",
    "a\n../x",
]
ESCAPING_PATTERNS = [
    "{../a,b}/passwd",
    "..{/etc/passwd,x}",
    "{a/,b}..",
    ".{./etc,b}",
    "{.{./etc,x},y}",
    "{a/,b}" * 9,
    SLOW * 4,
]
"""What leaves, or is too much, when Hadoop expands it; as the name of a file it is harmless."""


@pytest.mark.parametrize("root", ["local", "memory://bucket/root"])
@pytest.mark.parametrize("escape", ESCAPES)
def test_every_method_refuses_a_path_that_can_leave(tmp_path: Path, root: str, escape: str) -> None:
    storage = Storage(str(tmp_path / "root") if root == "local" else root)
    for method in (
        storage.path,
        storage.relative,
        storage.exists,
        storage.list_files,
        storage.read_bytes,
        storage.makedirs,
        storage.delete,
        lambda path: storage.write_atomic(path, b""),
        lambda path: list(storage.walk(path)),
    ):
        with pytest.raises(RefusedError) as caught:
            method(escape)
        assert caught.value.id == "storage.outside-root"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("root", ["local", "memory://bucket/root"])
@pytest.mark.parametrize("pattern", ESCAPING_PATTERNS)
def test_a_pattern_that_can_leave_is_refused_where_it_is_expanded(
    tmp_path: Path, root: str, pattern: str
) -> None:
    storage = Storage(str(tmp_path / "root") if root == "local" else root)
    for method in (storage.path, storage.list_files):
        with pytest.raises(RefusedError) as caught:
            method(pattern)
        assert caught.value.id == "storage.outside-root"


@pytest.mark.capability("SAFE-04")
def test_nothing_in_the_name_of_a_file_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"in/{SLOW * 4}{{{{{{x"
    storage = Storage(str(tmp_path / "root"))
    monkeypatch.setattr(containment, "expand", None)
    storage.write_atomic(name, b"x")
    [found] = storage.walk("in")
    assert (found.relative, storage.info(name)) == (name, found)
    assert (storage.relative(found.path), storage.path_of_file(name)) == (name, found.path)
    assert storage.open(name).read() == storage.read_bytes(name) == b"x"
    for link, target in (("in/[a]", tmp_path), ("in/[b]", tmp_path / "root/in")):
        (tmp_path / "root" / link).symlink_to(target)
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(RefusedError):
        storage.read_bytes("in/[a]/secret")
    assert storage.read_bytes(name.replace("in/", "in/[b]/", 1)) == b"x"


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A root with a folder link and a file link that lead out, and a secret outside."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    root = tmp_path / "root"
    (root / "in").mkdir(parents=True)
    (root / "in" / "folder").symlink_to(outside)
    (root / "files").mkdir()
    (root / "files" / "file").symlink_to(outside / "secret")
    return root


@pytest.mark.parametrize(
    "path", ["in/folder", "in/folder/secret", "in/folder/new/file", "files/file", "in/folder/*"]
)
def test_a_link_that_leads_out_is_refused(linked: Path, path: str) -> None:
    storage = Storage(str(linked))
    for method in (storage.path, storage.read_bytes, storage.delete, lambda p: storage.write_atomic(p, b"x")):
        with pytest.raises(RefusedError) as caught:
            method(path)
        assert caught.value.id == "storage.outside-root"
    assert (linked.parent / "outside" / "secret").read_text() == "secret"


@pytest.mark.parametrize("pattern", ["in/*/*", "files/*", "files"])
def test_a_listing_refuses_a_link_that_leads_out(linked: Path, pattern: str) -> None:
    storage = Storage(str(linked))
    with pytest.raises(RefusedError):
        storage.list_files(pattern) if "*" in pattern else list(storage.walk(pattern))


def test_deleting_a_folder_never_follows_links(linked: Path) -> None:
    Storage(str(linked)).delete("in")
    assert (linked.parent / "outside" / "secret").exists()


def test_a_root_that_is_itself_a_link_works(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "real")
    storage = Storage(str(tmp_path / "root"))
    storage.write_atomic("a/b", b"x")
    assert storage.read_bytes("a/b") == b"x"


@pytest.fixture(scope="module")
def hadoop_expands() -> Iterator[Callable[[str], list[str]]]:
    """Hadoop's own expansion, by which Spark lists files; empty for what Hadoop refuses."""
    gateway = launch_gateway()

    def expanded(pattern: str) -> list[str]:
        try:
            return list(gateway.jvm.org.apache.hadoop.fs.GlobExpander.expand(pattern))
        except Py4JJavaError:
            return []

    yield expanded
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=20)


PATTERNS = st.text(alphabet="./{},*\\~a:", max_size=14)


@settings(max_examples=500, deadline=None)
@example("{a/,b}..")
@example(".{./a,b}")
@example("}..")
@given(PATTERNS)
def test_what_is_accepted_stays_inside_however_hadoop_expands_it(hadoop_expands: Any, text: str) -> None:
    root = "/nonexistent/root"
    try:
        path = Storage(root).path(text)
    except RefusedError:
        return
    for expanded in hadoop_expands(path):
        assert expanded == root or expanded.startswith(root + "/")
        assert ".." not in expanded.split("/")


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="/{},ab*", max_size=14))
def test_patterns_expand_as_hadoop_expands_them(hadoop_expands: Any, text: str) -> None:
    expected = hadoop_expands(text)
    assert not expected or sorted(expand(text)) == sorted(expected)
