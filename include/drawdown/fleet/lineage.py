"""Which pipelines and tables feed which, by the paths, topics and schedules of the specs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drawdown.spec import Pipeline
from drawdown.spec.project_wide.order import upstreams
from drawdown.spec.sink import Sink
from drawdown.spec.source import Source


@dataclass(frozen=True)
class LineageNode:
    """One pipeline.

    Attributes:
        reads: by source what it reads: `landing/clicks (json)`.
        writes: the same of its sink.
        feeds: the pipelines that read its output, or wait for it.
    """

    pipeline: str
    reads: dict[str, str]
    writes: str
    feeds: tuple[str, ...]


def lineage(pipelines: Sequence[Pipeline]) -> dict[str, LineageNode]:
    """Return a node by the name of every pipeline."""
    above = {each.name: {*upstreams(each, pipelines), *_by_topic(each, pipelines)} for each in pipelines}
    return {
        each.name: LineageNode(
            each.name,
            {name: _source(source) for name, source in each.sources.items()},
            _sink(each.sink),
            tuple(sorted(name for name, feeders in above.items() if each.name in feeders)),
        )
        for each in pipelines
    }


@dataclass(frozen=True)
class Connections:
    """What one spec says of its neighbours, so that the graph needs no other one.

    A pipeline feeds another when one of its ``outputs`` is among the ``inputs`` of the other: ``path:…``,
    ``topic:broker/topic``, or ``pipeline:…`` where a schedule waits for it. ``reads`` and ``writes``: as in
    LineageNode, by key.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reads: dict[str, str]
    writes: dict[str, str]


def connections(pipeline: Pipeline) -> Connections:
    """Return the connections of a pipeline."""
    reads = {key: _source(source) for source in pipeline.sources.values() for key in _keys(source)}
    sink, schedule = pipeline.sink, pipeline.schedule
    awaited = [f"pipeline:{asset.pipeline}" for asset in schedule] if isinstance(schedule, list) else []
    key = f"topic:{sink.broker}/{sink.topic}" if sink.topic else f"path:{sink.path}" if sink.path else ""
    writes = {key or f"sink:{pipeline.name}": _sink(sink)}
    return Connections((*reads, *awaited), (*writes, f"pipeline:{pipeline.name}"), reads, writes)


def _keys(source: Source) -> list[str]:
    if topics := _topics(source):
        return [f"topic:{source.broker}/{topic}" for topic in topics]
    return [f"path:{source.path_below_root}" if source.path_below_root else f"source:{_source(source)}"]


def around(nodes: dict[str, LineageNode], name: str) -> dict[str, LineageNode]:
    """Return a pipeline's node with all that feed it, directly or not, and all that it feeds."""
    found = {name, *_reached(name, {node.pipeline: node.feeds for node in nodes.values()})}
    feeders = {each: tuple(node.pipeline for node in nodes.values() if each in node.feeds) for each in nodes}
    found |= _reached(name, feeders)
    return {
        each.pipeline: LineageNode(
            each.pipeline, each.reads, each.writes, tuple(fed for fed in each.feeds if fed in found)
        )
        for each in nodes.values()
        if each.pipeline in found
    }


def _reached(start: str, edges: dict[str, tuple[str, ...]]) -> set[str]:
    reached, left = set[str](), [start]
    while left:
        new = set(edges[left.pop()]) - reached
        reached |= new
        left += new
    return reached


def _by_topic(pipeline: Pipeline, pipelines: Sequence[Pipeline]) -> list[str]:
    read = {(source.broker, topic) for source in pipeline.sources.values() for topic in _topics(source)}
    return [other.name for other in pipelines if (other.sink.broker, other.sink.topic) in read]


def _topics(source: Source) -> list[str]:
    return [topic.strip() for topic in str(source.options.get("subscribe", "")).split(",") if topic.strip()]


def _source(source: Source) -> str:
    what = source.path or source.table or ", ".join(_topics(source))
    return f"{what} ({source.format})" if what else source.format


def _sink(sink: Sink) -> str:
    what = sink.path or sink.table or sink.topic or sink.function
    return f"{what} ({sink.format})" if what else sink.format
