"""Formats a plan for a terminal: the answer first, then what it is about, then what a run would read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from drawdown.cli.shown.plan_markdown import state_sentence
from drawdown.values.text import counted

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from drawdown.application.plan import Answer, Plan
    from drawdown.metastore.records import Checkpoint
    from drawdown.plan.preflight import Preflight
    from drawdown.plan_verdicts import PlanVerdict

_STREAMING = "spark.sql.streaming."
_COLOURS = {"refused": "bold red", "warning": "yellow", "allowed": "green", "note": "dim"}
_FITS = {"yes": "fits one drain", "no": "does not fit one drain", "unknown": "may fit one drain"}
_NOT_NEW = ("too_old", "rewritten")  # files that a source counts beside its backlog
_AGE = ("oldest", "headroom")  # how old the backlog is, not how much

_ANSWERS: dict[Answer, tuple[str, str]] = {
    "refused": ("would be refused; nothing would be changed", "bold red"),
    "start": ("would start", "bold green"),
    "nothing": ("has nothing to do", "bold"),
}


def plan_parts(found: Plan, *, verbose: bool) -> Iterator[RenderableType]:
    """Yield the parts, from top to bottom.

    Args:
        verbose: also notes, state, and why there is something to do.
    """
    from rich.text import Text

    from drawdown.cli.shown.listing import Heading, listing

    said, style = _ANSWERS[found.answer]
    yield Text.assemble(f"{found.pipeline}: ", ("the next run " + said, style))
    # An allowed change is one that somebody has just made to the spec, and asks about.
    matter = [each for each in found.verdicts if each.level != "note"]
    for each in matter:
        yield _verdict(each)
    columns = [Heading("source", "text"), Heading("a run would read", "text")]
    yield listing(columns, list(amounts(found.waiting).items()))
    if verbose or found.answer == "start":
        yield Text(f"{_FITS[found.fit.fits]}: {found.fit.why}")
    if found.size is not None:
        yield Text(f"size of the cluster: {found.size}")
    rest = [each for each in found.verdicts if each.level == "note"]
    if verbose:
        yield from _details(found, rest)
    elif rest:
        yield Text(f"{counted(len(rest), 'note')} and the state: --verbose", "dim")


def _details(found: Plan, rest: Sequence[PlanVerdict]) -> Iterator[RenderableType]:
    from rich.text import Text

    from drawdown.cli.shown.listing import records

    for each in rest:
        yield _verdict(each)
    if found.checkpoint is not None:
        yield Text(_noted(found.checkpoint))
    if found.operators:
        yield records(
            [
                {"stateful operator": each.name, "keeps": each.keeps, "written as": each.written}
                for each in found.operators
            ]
        )
        yield Text(f"state: {state_sentence(found.as_dict()['state'])}")
    for reason in found.waiting.reasons:
        yield Text(f"- {reason}")


def amounts(waiting: Preflight) -> dict[str, str]:
    """Describe per source what a run would read."""
    said = {
        name: ", ".join(
            _amount(unit, value)
            for unit, value in backlog.items()
            if unit not in _AGE and (value or unit not in _NOT_NEW)
        )
        for name, backlog in waiting.backlog.items()
    }
    return {name: text or "unknown" for name, text in said.items()}


def _verdict(each: PlanVerdict) -> Text:
    from rich.text import Text

    about = f"  {each.about}" if each.about else ""
    do = f"\n  do:    {each.do}" if each.do else ""
    return Text.assemble((each.level, _COLOURS[each.level]), f"  {each.id}{about}\n  {each.what}{do}")


def _amount(unit: str, value: Any) -> str:
    if isinstance(value, Mapping):
        parts = " + ".join(f"{count:,} of {part}" for part, count in value.items())
        return f"{parts or 0} {unit}"
    if unit in _NOT_NEW:
        return f"{counted(value, 'file')} {unit.replace('_', ' ')}"
    return counted(value, unit.removesuffix("s"))


def _noted(checkpoint: Checkpoint) -> str:
    """Describe the versions that wrote the checkpoint's last batch, and its state formats."""
    versions = checkpoint.fingerprint.get("versions", {})
    formats = checkpoint.fingerprint.get("state.formats", {})
    written = ", ".join(f"{name} {version}" for name, version in versions.items()) or "unknown versions"
    kept = ", ".join(f"{key.removeprefix(_STREAMING)}={value}" for key, value in sorted(formats.items()))
    return f"checkpoint: generation {checkpoint.generation}, written with {written}" + (
        f"; fixed in it: {kept}" if kept else ""
    )
