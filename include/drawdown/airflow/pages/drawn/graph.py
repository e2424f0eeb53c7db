"""The graph of pipelines and tables as SVG: layers from left to right, each pipeline a link to its page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from drawdown.observe.graph.layout import Place
    from drawdown.observe.graph.view import Graph, Node

_WIDTH, _HEIGHT, _GAP, _ROW = 206, 48, 44, 60
_CHARACTERS = 31
_EDGE = 8


def draw(graph: Graph, address: Callable[[Node], str]) -> Markup:
    """Return the picture; ``address``: of the page of a pipeline."""
    places = graph.layout.places
    edges = [_edge(route) for route in graph.layout.routes]
    nodes = [_node(node, places[node.key], address) for node in graph.nodes]
    width = graph.layout.layers * (_WIDTH + _GAP) - _GAP + 2 * _EDGE
    height = graph.layout.rows * _ROW + 2 * _EDGE
    return Markup(
        '<svg class="graph" role="group" aria-label="{}" width="{}" height="{}">'
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
        ' orient="auto"><path class="arrow" d="M0,0 L8,4 L0,8 z"/></marker></defs>{}{}</svg>'
    ).format("Pipelines and tables", max(width, 0), height, Markup("").join(edges), Markup("").join(nodes))


def _corner(place: Place) -> tuple[int, int]:
    layer, row = place
    return _EDGE + layer * (_WIDTH + _GAP), _EDGE + row * _ROW


def _edge(route: Sequence[Place]) -> Markup:
    """A curve from the right side of the first node to the left side of the last, through what is between."""
    left, top = _corner(route[0])
    path = [f"M{left + _WIDTH},{top + _HEIGHT // 2}"]
    x, y = left + _WIDTH, top + _HEIGHT // 2
    for place in route[1:]:
        left, top = _corner(place)
        middle = top + _HEIGHT // 2
        path.append(f"C{x + _GAP // 2},{y} {left - _GAP // 2},{middle} {left},{middle}")
        if place != route[-1]:
            path.append(f"H{left + _WIDTH}")
        x, y = left + _WIDTH, middle
    return Markup('<path class="edge" marker-end="url(#arrow)" d="{}"/>').format(" ".join(path))


def _node(node: Node, place: Place, address: Callable[[Node], str]) -> Markup:
    left, top = _corner(place)
    if node.state is None:
        return Markup(
            '<g class="node"><rect class="table-node" x="{}" y="{}" width="{}" height="{}" rx="16"/>'
            '<text x="{}" y="{}">{}</text><title>{}</title></g>'
        ).format(left, top + 8, _WIDTH, _HEIGHT - 16, left + 12, top + 28, _short(node.name), node.name)
    word = node.state.split()[0]
    title = f"{node.name}: {node.state}{f', {node.why}' if node.why else ''}"
    written = f"→ {_short(node.writes, _CHARACTERS - 2)}" if node.writes else ""
    if node.writes:
        title += f"; writes {node.writes}"
    return Markup(
        '<a href="{}" aria-label="{}"><g class="node state-{}"><title>{}</title>'
        '<rect class="pipeline-node" x="{}" y="{}" width="{}" height="{}" rx="4"/>'
        '<text class="name" x="{}" y="{}">{}</text><text class="state-text" x="{}" y="{}">{}</text>'
        '<text class="writes" x="{}" y="{}">{}</text></g></a>'
    ).format(
        address(node), title, word, title, left, top, _WIDTH, _HEIGHT, left + 10, top + 14, _short(node.name),
        left + 10, top + 28, node.state, left + 10, top + 41, written,
    )  # fmt: skip


def _short(name: str, characters: int = _CHARACTERS) -> str:
    """Leave out the middle of a long name: its start and its end tell most."""
    if len(name) <= characters:
        return name
    half = (characters - 1) // 2
    return f"{name[:half]}…{name[-half:]}"
