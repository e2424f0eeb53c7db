"""The graph of pipelines and tables, coloured by state."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from drawdown.airflow.pages.access import ReadableDags
from drawdown.airflow.pages.frame import answer
from drawdown.metastore import Metastore
from drawdown.observe.filters import Around
from drawdown.observe.graph.view import MOST, graph
from drawdown.spec import load_project

router = APIRouter()


@router.get("/graph")
def graph_page(request: Request, dags: ReadableDags, wanted: Annotated[Around, Depends()]) -> Response:
    """Return the pipelines of the DAGs that the user may read, and what they read and write."""
    with Metastore.open(load_project().metastore_url) as metastore:
        found = graph(metastore, dags, wanted)
    names = {node.key: node.name for node in found.nodes}
    return answer(
        request,
        "graph.html",
        {
            "title": "Graph",
            "wanted": wanted,
            "choices": found.choices,
            "found": found.found,
            "most": MOST,
            "graph": found,
            "rows": [
                {
                    "pipeline": node,
                    "from": [names[a] for a, b in found.edges if b == node.key],
                    "to": [names[b] for a, b in found.edges if a == node.key],
                }
                for node in found.pipelines
            ],
        },
    )
