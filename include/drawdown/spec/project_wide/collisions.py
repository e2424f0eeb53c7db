"""Two pipelines that cannot both be as they are, and which of them is refused: the newcomer.

Who ran first is asked of the metastore, and only once there is a collision: reading the specs of a project
that has none opens no database (decision 43).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from drawdown.errors import SpecError
from drawdown.values.text import utc


@dataclass(frozen=True)
class Ran:
    """What the metastore knows of a pipeline that has run.

    Attributes:
        first: when its first checkpoint was made.
        claims: the lines of its last run (claims.py), each with the time since when it holds; None when only
            an earlier version has run it.
    """

    first: datetime
    claims: Mapping[str, datetime] | None = None

    def since(self, claim: str) -> datetime | None:
        """Return since when it runs with this line; None if it has not."""
        return self.first if self.claims is None else self.claims.get(claim)


RanBefore = Mapping[str, Ran]
"""By name, the pipelines that have run."""


@dataclass(frozen=True)
class Side:
    """Pipelines that agree with each other, and the line that collides with another side's.

    Attributes:
        yields: whether it is refused alone when nobody has run.
    """

    names: tuple[str, ...]
    claim: str
    yields: bool = False

    def since(self, standing: RanBefore) -> datetime | None:
        """Return since when the first of them runs with the line; None if none has."""
        ran = [standing[name].since(self.claim) for name in self.names if name in standing]
        return min((each for each in ran if each is not None), default=None)


@dataclass(frozen=True)
class Collision:
    """What cannot stand beside each other.

    Attributes:
        what: the sentence that names all sides.
        do: what a side that is refused can do.
        together: whether the sides that have run can stay beside each other, once the others have gone.
        of_newcomers: whether it is one only for a side that `yields`, has not run and meets one that has.
    """

    id: str
    sides: tuple[Side, ...]
    what: str
    do: str
    together: bool = False
    of_newcomers: bool = False


@dataclass(frozen=True)
class Flaw:
    """What is wrong with one pipeline, whoever has run."""

    name: str
    error: SpecError


def decide(found: Sequence[Collision | Flaw], ask: Callable[[], RanBefore | None]) -> dict[str, SpecError]:
    """Return an error by name for each pipeline that has to change.

    Args:
        ask: returns who has run; None when nobody can tell. It is called if there is a collision.
    """
    errors: dict[str, SpecError] = {}
    flawed = {each.name for each in found if isinstance(each, Flaw)}
    standing = ask() if any(isinstance(each, Collision) for each in found) else {}
    for each in found:
        if isinstance(each, Flaw):
            errors.setdefault(each.name, each.error)
        else:
            for name, error in _refused(each, standing, flawed):
                errors.setdefault(name, error)
    return errors


def _refused(
    collision: Collision, standing: RanBefore | None, flawed: Collection[str]
) -> Iterator[tuple[str, SpecError]]:
    stay = who_stays(collision.sides, standing or {}, together=collision.together)
    if collision.of_newcomers and (
        not stay or any(side.yields and side.since(standing or {}) for side in collision.sides)
    ):
        return
    losers = [side for side in collision.sides if side not in stay]
    hopeless = [side for side in collision.sides if set(side.names) <= set(flawed)]
    if stay:
        names = [name for side in stay for name in side.names]
        since = utc(min(stay.values()))
        why = f"{_listed(names)} ran first (since {since}) and {_verb(names, 'goes', 'go')} on"
    elif hopeless and len(hopeless) < len(collision.sides):
        losers, why = hopeless, "it cannot run as it is"
    elif standing is None:
        why = "the metastore cannot be read, so it is not known who ran first"
    else:
        why = "neither has run yet"
    if not stay:
        losers = [side for side in losers if side.yields] or losers
    where = " and ".join(spec_file(side.names[0]) for side in collision.sides)
    for side in losers:
        must = f"{_listed(side.names)} {_verb(side.names, 'has', 'have')} to change"
        error = SpecError(collision.id, f"{collision.what}; {why}: {must}", where=where, do=collision.do)
        yield from ((name, error) for name in side.names)


def who_stays(sides: Sequence[Side], standing: RanBefore, *, together: bool = False) -> dict[Side, datetime]:
    """Return the sides that stay, each with the time since when it runs: none if none has run."""
    ran = {side: since for side in sides if (since := side.since(standing)) is not None}
    if not ran or (together and len(ran) < len(sides)):
        return ran
    if together:
        latest = max(ran, key=lambda side: ran[side])
        return {side: since for side, since in ran.items() if side is not latest}
    first = min(ran, key=lambda side: ran[side])
    return {first: ran[first]}


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _verb(names: Sequence[str], one: str, several: str) -> str:
    return one if len(names) == 1 else several


def spec_file(name: str) -> str:
    """Return the file of a pipeline as errors name it."""
    return f"include/pipelines/{name}/pipeline.yaml"
