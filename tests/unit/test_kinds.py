"""What the kinds of sources and sinks say about themselves."""

from __future__ import annotations

import subprocess
import sys
from itertools import permutations
from pathlib import Path

import grimp
import pytest

from drawdown.kinds import SinkKind, code_at
from drawdown.sinks.registry import SINKS
from drawdown.sources.registry import SOURCES

LIBRARY = Path(sys.modules["drawdown"].__path__[0])
KINDS = sorted(
    ".".join(path.relative_to(LIBRARY).with_suffix("").parts) for path in LIBRARY.glob("s*/*/kind.py")
)
HEAVY = ("drawdown.spec", "drawdown.metastore", "pyspark", "confluent_kafka", "psycopg", "deltalake")


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_says_what_it_is_without_the_spec_and_without_spark(kind: str) -> None:
    shown = f"import drawdown.{kind}, sys; print(sorted(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_folder_is_in_the_registry() -> None:
    listed = {code.split(":")[0].split(".")[2] for each in SOURCES.values() for code in [each.reader]}
    assert listed == {path.parent.name for path in (LIBRARY / "sources").glob("*/kind.py")}
    folders = {path.parent.name for path in (LIBRARY / "sinks").glob("*/kind.py")}
    assert {_module_of(kind).split(".")[2] for kind in SINKS.values()} == folders


@pytest.mark.parametrize("format", SOURCES)
def test_the_code_of_a_source_kind_is_there(format: str) -> None:
    kind = SOURCES[format]
    for code in filter(None, (kind.reader, kind.backlog)):
        assert callable(code_at(code))


def _module_of(kind: SinkKind) -> str:
    """The module in which a kind's functions were written."""
    return kind.stage.__module__


@pytest.mark.parametrize("room", ["sources", "sinks"])
def test_kinds_do_not_know_each_other(room: str) -> None:
    """Import Linter's contracts would have to list them."""
    graph = grimp.build_graph("drawdown")
    kinds = [f"drawdown.{kind.removesuffix('.kind')}" for kind in KINDS if kind.startswith(room)]
    assert len(kinds) >= 5
    for one, other in permutations(kinds, 2):
        assert graph.find_shortest_chains(one, other, as_packages=True) == set()
