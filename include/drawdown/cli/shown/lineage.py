"""Pipelines as trees: below each what it feeds; one that is fed by several stands in full only once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.text import Text
from rich.tree import Tree

from drawdown.fleet.lineage import LineageNode


def lineage_trees(nodes: Mapping[str, LineageNode]) -> Iterator[Tree]:
    """Yield a tree for each pipeline that no other feeds; then those of pipelines that feed each other."""
    fed = {name for node in nodes.values() for name in node.feeds}
    seen = set[str]()
    for name in [*(name for name in nodes if name not in fed), *fed]:
        if name not in seen:
            yield _tree(nodes, name, seen)


def _tree(nodes: Mapping[str, LineageNode], name: str, seen: set[str]) -> Tree:
    if name in seen:
        return Tree(Text.assemble((name, "bold"), ("  see above", "dim")))
    seen.add(name)
    node = nodes[name]
    reads = [f"\n← {read}" for read in node.reads.values()]
    tree = Tree(Text.assemble((name, "bold"), *reads, f"\n→ {node.writes}"))
    tree.children += [_tree(nodes, each, seen) for each in node.feeds]
    return tree
