"""`drawdown lineage`: which pipelines and tables feed which, by the specs. Needs no Spark."""

from __future__ import annotations

from dataclasses import asdict

from drawdown.cli.arguments import Json, SomeName
from drawdown.cli.screen import out, print_json
from drawdown.fleet.lineage import around
from drawdown.fleet.lineage import lineage as lineage_of
from drawdown.spec import load_pipeline, load_pipelines, load_project


def lineage(name: SomeName = None, as_json: Json = False) -> None:
    """Show what each pipeline reads (←), writes (→) and feeds; with a name, only what it depends on or feeds.

    Read from the specs: nothing is asked of a source or of the metastore.
    """
    project = load_project()
    if name is not None:
        load_pipeline(project, name)
    nodes = lineage_of(load_pipelines(project))
    if name is not None:
        nodes = around(nodes, name)
    if as_json:
        return print_json([asdict(node) for node in nodes.values()])
    from drawdown.cli.shown.lineage import lineage_trees

    for tree in lineage_trees(nodes):
        out().print(tree)
    return None
