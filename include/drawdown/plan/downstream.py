"""Who reads what a replay has replaced: nothing starts by itself, each is told of with its command."""

from __future__ import annotations

from drawdown.spec import Pipeline, Project, iter_pipelines
from drawdown.spec.interval import Interval, shown
from drawdown.spec.order import upstreams


def offers_downstream(project: Project, pipeline: Pipeline, interval: Interval) -> list[dict[str, str]]:
    """A notice for the run record of each pipeline that reads this one: `id`, `what`, `about`, `do`."""
    others = [each for each in iter_pipelines(project) if isinstance(each, Pipeline)]
    return [
        {
            "id": "replay.downstream",
            "what": f"{other.name} reads what was replaced, and is as it was",
            "about": other.name,
            "do": _do(other, interval),
        }
        for other in others
        if pipeline.name in upstreams(other, others)
    ]


def _do(other: Pipeline, interval: Interval) -> str:
    if other.replay:
        return f"drawdown backfill {other.name} --from {shown(interval.start)} --to {shown(interval.end)}"
    anew = (
        f"`drawdown rebuild start {other.name}`"
        if other.sink.format == "delta"
        else "in a new pipeline folder with a sink of its own"
    )
    return f"{other.name} has no `replay:`; add it, or compute all anew: {anew}"
