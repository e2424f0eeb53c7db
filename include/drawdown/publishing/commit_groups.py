"""After a publish: tell the consumer groups of `commit_group:` how far rows are published.

Rows of a held slice, and of slices behind it, are lag. What goes wrong is a notice in the run record, and the
next publish commits the newer position anyway.
"""

from __future__ import annotations

from typing import Any

from drawdown.kinds import code_at
from drawdown.publishing.settled import settled_batch
from drawdown.sources.published import PublishedSource
from drawdown.workspace import Generation


def tell_commit_groups(generation: Generation) -> list[dict[str, str]]:
    """Commit the published offsets of each source with `commit_group:`; return a notice for each failure."""
    pipeline = generation.pipeline
    asked = {name: source for name, source in pipeline.sources.items() if source.commit_group is not None}
    # A rebuild publishes into its shadow, which no reader sees.
    if not asked or pipeline.apart or generation.checkpoint is None:
        return []
    offsets = published_offsets(generation)
    notices = [
        code_at(source.kind.published)(PublishedSource(generation.project, pipeline, name, offsets[name]))
        for name, source in asked.items()
        if source.kind.published is not None and offsets.get(name) is not None
    ]
    return [notice for notice in notices if notice is not None]


def published_offsets(generation: Generation) -> dict[str, Any]:
    """Return Spark's offset of each source up to which all is published; empty before the first publish.

    Of a source that the transform reads several times, the first reading counts.
    """
    last = settled_batch(generation)
    if last is None:
        return {}
    order = generation.fingerprint.get("source_order", ())
    return dict(zip(order, last.offsets_to, strict=False))
