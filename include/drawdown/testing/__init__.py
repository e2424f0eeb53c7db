"""A pipeline's own cases from pytest, as `drawdown test` runs them, and the servers that they need.

from drawdown.testing import Bench, cases_of

@pytest.fixture(scope="session")
def bench():
    with Bench(cases_of("."), ".") as bench:
        yield bench

@pytest.mark.parametrize("case", cases_of("."), ids=str)
def test_a_case(case, bench):
    bench.run(case)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drawdown.testing.bench import Bench, cases_of
    from drawdown.testing.cases.case import Case

__all__ = ["Bench", "Case", "cases_of"]

# When first used: `make down` stops a broker of `servers` with the standard library alone.
_HOME = {"Bench": "bench", "Case": "cases.case", "cases_of": "bench"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'drawdown.testing' has no attribute {name!r}")
    return getattr(import_module(f"drawdown.testing.{_HOME[name]}"), name)
