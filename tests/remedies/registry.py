"""The register of states: each id of an error by a function that brings it about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from drawdown.errors import DrawdownError
from tests.remedies.ground import NAME, Ground

Hand = Callable[[], object]


@dataclass
class Made:
    """A state that was made.

    Attributes:
        error: as it was printed.
        hands: what a person does, by the phrase of the remedy that says so.
        outside: phrases of ways that nothing here can carry out, with the reason.
        fill: values of words that the text leaves to the reader, such as PATH.
        again: the command that was refused; it succeeds after each way.
        wanted: rows of the sink in the end, by a phrase of the way; "" is for all others.
        names: the pipelines that are drained in the end.
        after: done between the way and the runs, for example new data.
        until: commands that may end with another code, by their first words.
        goes_on: replaces the drains in the end, where the state has no pipeline that could run.
    """

    error: DrawdownError
    hands: Mapping[str, Hand] = field(default_factory=dict)
    outside: Mapping[str, str] = field(default_factory=dict)
    fill: Mapping[str, str] = field(default_factory=dict)
    again: str = ""
    wanted: Mapping[str, Mapping[int, int]] | None = None
    names: tuple[str, ...] = (NAME,)
    after: Hand = lambda: None
    goes_on: Hand | None = None


def rows(*ids: int) -> dict[str, Counter[int]]:
    """The same rows, once each, after every way."""
    return {"": Counter(ids)}


@dataclass(frozen=True)
class State:
    """One entry: an id, or an id and which of its cases, as in `sink.older-copy/quarantine`."""

    name: str
    make: Callable[[Ground], Made]
    full: bool

    @property
    def id(self) -> str:
        return self.name.partition("/")[0]


STATES: dict[str, State] = {}


def state(name: str, *, full: bool = False) -> Callable[[Callable[[Ground], Made]], Callable[[Ground], Made]]:
    """Register the function that makes a state."""

    def add(make: Callable[[Ground], Made]) -> Callable[[Ground], Made]:
        assert name not in STATES, name
        STATES[name] = State(name, make, full)
        return make

    return add
