"""Sorts pipelines: upstream before downstream."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from drawdown.errors import SpecError
from drawdown.spec.pipeline import Pipeline


def in_dependency_order(pipelines: Sequence[Pipeline]) -> list[Pipeline]:
    """Return the pipelines upstream first, otherwise in the given order.

    Raises:
        SpecError: as `dependencies`.
    """
    by_name = {pipeline.name: pipeline for pipeline in pipelines}
    sorter, ordered = dependencies(pipelines), list[Pipeline]()
    while sorter.is_active():
        ready = sorter.get_ready()
        ordered += [by_name[name] for name in ready]
        sorter.done(*ready)
    return ordered


def dependencies(pipelines: Sequence[Pipeline]) -> TopologicalSorter[str]:
    """Return a prepared sorter of pipeline names: ready ones do not wait for an unfinished one.

    A pipeline is downstream of another when it reads the other's sink path, or its schedule names
    the other's asset.

    Raises:
        SpecError: ``group.cycle``.
    """
    sorter = TopologicalSorter({each.name: upstreams(each, pipelines) for each in pipelines})
    try:
        sorter.prepare()
    except CycleError as cycle:
        raise SpecError(
            "group.cycle",
            f"these pipelines wait for each other: {' → '.join(cycle.args[1])}",
            do="let one of them read something else",
        ) from None
    return sorter


def upstreams(pipeline: Pipeline, pipelines: Sequence[Pipeline]) -> list[str]:
    """Return the names of the pipelines whose output this one waits for."""
    read = {path for source in pipeline.sources.values() if (path := source.path_below_root)}
    schedule = pipeline.schedule
    awaited = {asset.pipeline for asset in schedule} if isinstance(schedule, list) else set()
    return [
        other.name
        for other in pipelines
        if other.name != pipeline.name and (other.sink.path in read or other.name in awaited)
    ]
