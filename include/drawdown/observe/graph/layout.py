"""A layered layout of a directed graph: sources at the left, each edge to the right, few crossings.

The steps of Sugiyama, Tagawa and Toda (1981): layers by the longest path, invisible nodes where an edge spans
several layers, an order within each layer by the mean position of the neighbours. Cycles are cut where a
depth-first search closes them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

_SWEEPS = 8
Edge = tuple[str, str]
Place = tuple[int, int]
"""Layer and position in it."""


@dataclass(frozen=True)
class Layout:
    """Where nodes stand, and the places that each edge passes, from its start to its end."""

    places: Mapping[str, Place]
    routes: Sequence[Sequence[Place]]
    layers: int
    rows: int


def layout(nodes: Sequence[str], edges: Iterable[Edge]) -> Layout:
    """Return the layout; the order of the nodes decides where nothing else does."""
    known = set(nodes)
    wanted = sorted({(a, b) for a, b in edges if a in known and b in known and a != b})
    forward = _without_cycles(nodes, wanted)
    layer = _layers(nodes, forward)
    chains = {edge: _chain(edge, layer) for edge in forward}
    order = _ordered(nodes, layer, chains)
    places = {name: (number, at) for number, names in enumerate(order) for at, name in enumerate(names)}
    # An edge that closes a cycle goes back.
    routes = [[places[name] for name in chains.get(edge, edge)] for edge in wanted]
    return Layout({name: places[name] for name in nodes}, routes, len(order), max(map(len, order), default=0))


def _without_cycles(nodes: Sequence[str], edges: Sequence[Edge]) -> list[Edge]:
    after = defaultdict[str, list[str]](list)
    for a, b in edges:
        after[a].append(b)
    state, cut = dict[str, int](), set[Edge]()
    for start in nodes:
        if start in state:
            continue
        stack = [(start, iter(after[start]))]
        state[start] = 1
        while stack:
            name, rest = stack[-1]
            reached = next(rest, None)
            if reached is None:
                state[name] = 2
                stack.pop()
            elif state.get(reached) == 1:
                cut.add((name, reached))
            elif reached not in state:
                state[reached] = 1
                stack.append((reached, iter(after[reached])))
    return [edge for edge in edges if edge not in cut]


def _layers(nodes: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """Each node one layer behind the last of those that feed it."""
    before, left = defaultdict[str, list[str]](list), dict.fromkeys(nodes, 0)
    after = defaultdict[str, list[str]](list)
    for a, b in edges:
        before[b].append(a)
        after[a].append(b)
        left[b] += 1
    layer, ready = dict[str, int](), [name for name in nodes if not left[name]]
    while ready:
        name = ready.pop()
        layer[name] = max((layer[each] + 1 for each in before[name]), default=0)
        for each in after[name]:
            left[each] -= 1
            if not left[each]:
                ready.append(each)
    for name in nodes:  # what feeds others and is fed by none stands next to them
        if not before[name] and after[name]:
            layer[name] = min(layer[each] for each in after[name]) - 1
    return layer


def _chain(edge: Edge, layer: Mapping[str, int]) -> list[str]:
    """The nodes of an edge, with an invisible one for each layer that it crosses."""
    a, b = edge
    between = range(layer[a] + 1, layer[b])
    return [a, *(f"{a}\0{b}\0{number}" for number in between), b]


def _ordered(
    nodes: Sequence[str], layer: Mapping[str, int], chains: Mapping[Edge, Sequence[str]]
) -> list[list[str]]:
    order = [list[str]() for _ in range(max(layer.values(), default=-1) + 1)]
    for name in nodes:
        order[layer[name]].append(name)
    for chain in chains.values():
        for number, name in enumerate(chain[1:-1], layer[chain[0]] + 1):
            order[number].append(name)
    before, after = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for chain in chains.values():
        for a, b in pairwise(chain):
            after[a].append(b)
            before[b].append(a)
    for sweep in range(_SWEEPS):
        forth = sweep % 2 == 0
        for number in range(1, len(order)) if forth else range(len(order) - 2, -1, -1):
            beside = order[number - 1 if forth else number + 1]
            _sort(order[number], beside, before if forth else after)
    return order


def _sort(names: list[str], beside: Sequence[str], neighbours: Mapping[str, Sequence[str]]) -> None:
    """Sort by the mean position of the neighbours; a node without any keeps its own."""
    at = {name: number for number, name in enumerate(beside)}
    scale = max(len(beside), 1) / max(len(names), 1)
    own = {name: number * scale for number, name in enumerate(names)}

    def mean(name: str) -> float:
        found = [at[each] for each in neighbours.get(name, ()) if each in at]
        return sum(found) / len(found) if found else own[name]

    names.sort(key=mean)
