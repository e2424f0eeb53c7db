"""`commit_group:`: a consumer group that is told which offsets readers of the sink see.

Spark keeps its offsets in the checkpoint and commits none to Kafka, so tools that show the lag of consumer
groups do not see its queries. Nothing here is ever read back.
"""

from __future__ import annotations

from drawdown.brokers.group_offsets import commit_group_offsets
from drawdown.brokers.offsets import flat
from drawdown.sources.published import PublishedSource


def commit(published: PublishedSource) -> dict[str, str] | None:
    """Commit the offsets up to which rows were published; return a notice when that failed."""
    source = published.source
    group, offsets = source.commit_group, flat(published.offset)
    if group is None or not offsets:
        return None
    try:
        commit_group_offsets(published.project.brokers[source.broker], group, offsets)
    except Exception as cause:  # noqa: BLE001 - the rows are published: whatever it is, the run goes on
        return {
            "id": "source.group-offsets",
            "what": f"the published offsets of source {published.name} of {published.pipeline.name} could not"
            f" be committed to the consumer group {group}: {_why(cause)}",
            "about": published.name,
            "do": "the rows are published, and the next publish commits again: let no consumer use the group,"
            " and give the pipeline's user Read on it",
        }
    return None


def _why(cause: Exception) -> str:
    said = cause.args[0] if cause.args else ""
    return str(said.str()) if hasattr(said, "str") else f"{type(cause).__name__} {said}".strip()
