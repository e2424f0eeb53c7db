"""Pipelines with their states, and the tables between them: where late or missing data comes from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from drawdown.fleet.standing import WORST_FIRST, State
from drawdown.metastore import Metastore
from drawdown.observe.figures import Glance, glance
from drawdown.observe.filters import Around, Choices
from drawdown.observe.graph.layout import Edge, Layout, layout

MOST = 60
"""Pipelines on a page: more are not readable."""


@dataclass(frozen=True)
class Node:
    """A pipeline with what it writes, or a table, topic or folder (without state and DAG)."""

    key: str
    name: str
    state: State | None = None
    why: str = ""
    dag_id: str = ""
    writes: str = ""


@dataclass(frozen=True)
class Graph:
    """What the page shows.

    Attributes:
        found: how many pipelines match; at most MOST of them are shown, the worst.
        edges: of nodes, by key.
        choices: the values that the filters offer, by filter.
    """

    nodes: Sequence[Node]
    edges: Sequence[Edge]
    layout: Layout
    found: int
    choices: dict[str, list[str]]

    @property
    def pipelines(self) -> list[Node]:
        """The pipelines that are shown."""
        return [node for node in self.nodes if node.state is not None]


def graph(metastore: Metastore, dags: Collection[str] | None, wanted: Around) -> Graph:
    """Return the graph of the pipelines whose DAG is among these.

    Args:
        dags: the ids of the DAGs that may be seen; None: all.
    """
    visible = [seen for seen in glance(metastore) if dags is None or seen.figures.dag_id in dags]
    taken, choices = [seen for seen in visible if wanted.takes(seen)], Choices()
    for seen in visible:
        choices.add(seen)
    if wanted.around:
        near = _around(wanted.around, visible)
        taken = [seen for seen in taken if seen.pipeline in near]
    worst = sorted(taken, key=lambda seen: (WORST_FIRST.index(seen.finding.state), seen.pipeline))[:MOST]
    shown = sorted(worst, key=lambda seen: seen.pipeline)
    nodes, edges = _nodes(shown), _edges(shown)
    return Graph(
        list(nodes.values()),
        edges,
        layout(list(nodes), edges),
        len(taken),
        choices.offered,
    )


def _nodes(shown: Sequence[Glance]) -> dict[str, Node]:
    """A table that one of them writes is part of its writer's box."""
    found, writers = dict[str, Node](), _writers(shown)
    for seen in shown:
        finding, figures = seen.finding, seen.figures
        own = [name for key, name in figures.writes.items() if len(writers[key]) == 1]
        key = f"pipeline:{seen.pipeline}"
        found[key] = Node(
            key, seen.pipeline, finding.state, finding.why, figures.dag_id, ", ".join(own)
        )  # fmt: skip
        for key, name in {**figures.reads, **figures.writes}.items():
            if len(writers.get(key, ())) != 1:
                found.setdefault(key, Node(key, name))
    return found


def _edges(shown: Sequence[Glance]) -> list[Edge]:
    """A schedule that waits for a pipeline is an edge as well."""
    found, writers, names = set[Edge](), _writers(shown), {f"pipeline:{seen.pipeline}" for seen in shown}
    for seen in shown:
        own = f"pipeline:{seen.pipeline}"
        for key in seen.figures.inputs:
            if not key.startswith("pipeline:"):
                [start] = writers[key] if len(writers.get(key, ())) == 1 else [key]
                found.add((start, own))
            elif key in names:
                found.add((key, own))
        found |= {(own, key) for key in seen.figures.writes if len(writers[key]) != 1}
    return sorted((a, b) for a, b in found if a != b)


def _writers(shown: Iterable[Glance]) -> dict[str, list[str]]:
    found = defaultdict[str, list[str]](list)
    for seen in shown:
        for key in seen.figures.writes:
            found[key].append(f"pipeline:{seen.pipeline}")
    return dict(found)


def _feeds(seen: Sequence[Glance]) -> dict[str, set[str]]:
    """Return by pipeline those that it feeds."""
    readers = defaultdict[str, set[str]](set)
    for each in seen:
        for key in each.figures.inputs:
            readers[key].add(each.pipeline)
    return {
        each.pipeline: {name for key in each.figures.outputs for name in readers.get(key, ())}
        - {each.pipeline}
        for each in seen
    }


def _around(name: str, seen: Sequence[Glance]) -> set[str]:
    """Return a pipeline with all that feed it, directly or not, and all that it feeds."""
    feeds = _feeds(seen)
    fed_by = defaultdict[str, set[str]](set)
    for each, fed in feeds.items():
        for other in fed:
            fed_by[other].add(each)
    return {name} | _reached(name, feeds) | _reached(name, fed_by)


def _reached(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    reached, left = set[str](), [start]
    while left:
        new = edges.get(left.pop(), set()) - reached
        reached |= new
        left += new
    return reached
