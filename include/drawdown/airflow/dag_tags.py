"""The tags of every DAG: `drawdown`, the kind of DAG, and the `tags:` of its pipelines."""

from __future__ import annotations

from collections.abc import Iterable

from drawdown.spec import Pipeline


def dag_tags(*kinds: str, pipelines: Iterable[Pipeline] = ()) -> list[str]:
    """Return the tags of a DAG, sorted."""
    return sorted({"drawdown", *kinds, *(tag for pipeline in pipelines for tag in pipeline.tags)})
