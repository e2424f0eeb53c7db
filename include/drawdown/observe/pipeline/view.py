"""The page of one pipeline: what was recorded of it, over its last runs.

A dozen reads of the metastore, none of a source or a table, and no Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drawdown.metastore.records import Run
from drawdown.observe.figures import Seen, look
from drawdown.observe.pipeline.backlog import BacklogTrend, backlog_trends
from drawdown.observe.pipeline.columns import SinkColumns, sink_columns
from drawdown.observe.pipeline.expectations import ExpectationRow, expectation_rows
from drawdown.observe.pipeline.points import RunPoint, run_points
from drawdown.observe.pipeline.query import FixedQuery, SchemaChange, fixed_query, schema_changes
from drawdown.observe.pipeline.written import Written, written
from drawdown.workspace import Workspace

CHOICES = (30, 100)
"""How many runs the charts can show."""
_BATCHES = 300
"""Batches that are read for event times and rates."""


@dataclass(frozen=True)
class PipelineView:
    """What the page shows.

    Attributes:
        seen: its figures; None before anything was recorded.
        points: its last runs, oldest first.
        newest: the newest run.
        query: what its checkpoint fixes; None before the first run.
        schemas: how the columns of its sink changed, newest first.
        columns: where they come from; None where no run has recorded it.
    """

    pipeline: str
    seen: Seen | None
    points: Sequence[RunPoint]
    newest: Run | None
    backlogs: Sequence[BacklogTrend]
    expectations: Sequence[ExpectationRow]
    query: FixedQuery | None
    schemas: Sequence[SchemaChange]
    columns: SinkColumns | None
    written: Written


def pipeline_view(workspace: Workspace, pipeline: str, runs: int = CHOICES[0]) -> PipelineView:
    """Return the view over so many runs.

    Raises:
        DrawdownError: the metastore cannot be read.
    """
    metastore = workspace.metastore
    last = metastore.recent_runs(pipeline, runs, with_progress=True)
    generations = metastore.generations(pipeline)
    live = next((each for each in reversed(generations) if each.state == "live"), None)
    batches = [] if live is None else metastore.newest_batches(pipeline, live.generation, _BATCHES)
    folder = written(workspace, pipeline)
    return PipelineView(
        pipeline=pipeline,
        seen=next(iter(look(metastore, [pipeline])), None),
        points=run_points(last, batches),
        newest=last[0] if last else None,
        backlogs=backlog_trends(metastore.figures.backlogs(pipeline, runs), last, batches, metastore.now()),
        expectations=expectation_rows(metastore.verdicts(pipeline, runs)),
        query=None if live is None else fixed_query(live),
        schemas=schema_changes(generations),
        columns=sink_columns(workspace, folder.spec, live),
        written=folder,
    )
