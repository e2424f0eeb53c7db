"""Open the Target of a pipeline's output or quarantine."""

from __future__ import annotations

from collections.abc import Sequence

from drawdown.changes.protocol import Replaceable, Target
from drawdown.delta.table import DeltaTableFiles
from drawdown.kinds import code_at
from drawdown.metastore.records import StagedTable
from drawdown.sinks.delta.publish import DeltaTarget
from drawdown.sinks.locations import quarantine_uri
from drawdown.sinks.registry import SINKS
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage


def target_of(
    project: Project, pipeline: Pipeline, table: StagedTable, keys: Sequence[str] | None = None
) -> Target | None:
    """Return the target; None for a sink that shows each batch itself as it is written.

    Args:
        keys: the keys under which the rows were staged; None: those of the spec.
    """
    if table == "quarantine":
        return DeltaTarget(Storage.of(project), DeltaTableFiles(quarantine_uri(project, pipeline)))
    code = SINKS[pipeline.sink.format].target(pipeline.sink)
    if code is None:
        return None
    target: Target = code_at(code)(project, pipeline, pipeline.sink.keys if keys is None else keys)
    return target


def replaceable_of(project: Project, pipeline: Pipeline) -> Replaceable:
    """Return the output of a pipeline with `replay:` (spec/replay.py allows no other sinks)."""
    target = target_of(project, pipeline, "output")
    assert isinstance(target, Replaceable)
    return target
