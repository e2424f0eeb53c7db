"""A batch that a dead run has begun, whose rows a sink may hold already: it is finished as it was begun.

Which of its rows went on was decided by the rules of that day. Judged by other ones, a row would be in
neither table nor quarantine, or in both. So a run notes how it judges before its first batch
(`Pipeline.judging`), and the next run finishes such a batch under what is noted, and does nothing else;
changed keys take effect behind it.
"""

from __future__ import annotations

from drawdown.plan_verdicts import PlanVerdict
from drawdown.sinks.stage import SinkStage, sink_for
from drawdown.spec import Pipeline
from drawdown.workspace import Generation


def begun_batch(generation: Generation, sink: SinkStage) -> int | None:
    """Return the planned batch whose rows are fixed, as its sink may hold some; None if there is none."""
    files = generation.files
    if generation.checkpoint is None or not files.unfinished:
        return None
    batch_id = files.last_offset_batch()
    assert batch_id is not None
    begun = generation.checkpoint.begun_batch == batch_id or sink.holds(generation.number, batch_id)
    return batch_id if begun else None


def finishing(generation: Generation) -> Pipeline:
    """Return the version for the next run: it judges as noted while a begun batch is unfinished."""
    pipeline, checkpoint = generation.pipeline, generation.checkpoint
    noted = checkpoint.judging if checkpoint is not None else {}
    if not noted or noted == pipeline.judging:
        return pipeline
    begun = begun_batch(generation, sink_for(generation.workspace, pipeline))
    return pipeline if begun is None else pipeline.judging_as(noted)


def postponed_rules(pipeline: Pipeline) -> PlanVerdict | None:
    """Return the warning that a changed key waits; None if no key does."""
    if not pipeline.finishing:
        return None
    return PlanVerdict(
        "warning",
        "rules.postponed",
        f"the sink may hold rows of a batch of {pipeline.name} that a dead run has begun: the next run only"
        " finishes this batch, under the rules that it was begun under; changes of `rules:`, `malformed:`,"
        " `policy: {drift}`, `max_future:` and `late:` take effect with the run after it",
        do=f"`drawdown run {pipeline.name}`, twice",
        about="rules",
    )
