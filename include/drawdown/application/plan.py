"""The plan of a pipeline's next run: refusals, changes, kept state and backlog."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from drawdown.errors import DrawdownError
from drawdown.metastore.operations.runs import ANSWER, REBUILD
from drawdown.metastore.records import Checkpoint
from drawdown.plan.drain_fit import DrainFit, drain_fit
from drawdown.plan.preflight import Preflight, preflight
from drawdown.plan.state_size import StateSize, state_size
from drawdown.plan_verdicts import PlanVerdict
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from drawdown.query.state.operators import Operator

_RUNS_LOOKED_AT = 10

Answer = Literal["refused", "start", "nothing"]
"""Whether the next run would be refused, would start, or has nothing to do."""


@dataclass(frozen=True)
class Plan:
    """The plan of a pipeline's next run.

    Attributes:
        pipeline: its name.
        checkpoint: the live generation; None before the first run.
        verdicts: everything found, refusals first.
        errors: what the run would raise; empty when nothing is refused.
        operators: the stateful operators of the query; empty when it was refused.
        waiting: the preflight's result: whether there is work, why, and how much.
        versions: of Spark, Delta and Drawdown, with which the next batch is written.
        state: rows, bytes and files of the kept state; None before the first run.
        fit: whether the backlog fits one drain.
        size: how many workers the run would have, and why; None for a profile without workers.
    """

    pipeline: str
    checkpoint: Checkpoint | None
    verdicts: tuple[PlanVerdict, ...]
    errors: tuple[DrawdownError, ...]
    operators: tuple[Operator, ...]
    waiting: Preflight
    versions: dict[str, str] | None
    state: StateSize | None
    fit: DrainFit
    size: str | None = None

    @property
    def answer(self) -> Answer:
        """What the next run would do, in one word."""
        if self.refused:
            return "refused"
        return "start" if self.waiting.work else "nothing"

    @property
    def refused(self) -> bool:
        """Whether the next run would be refused."""
        return bool(self.errors)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-ready values, as in `drawdown plan --json`."""
        return {
            "pipeline": self.pipeline,
            "answer": self.answer,
            "generation": self.checkpoint and self.checkpoint.generation,
            "verdicts": [vars(verdict) for verdict in self.verdicts],
            "operators": [vars(operator) for operator in self.operators],
            "reads": self.waiting.backlog,
            "why": self.waiting.reasons,
            "versions": self.versions,
            "checkpoint": self.checkpoint and self.checkpoint.fingerprint,
            "state": self.state and asdict(self.state),
            "fit": asdict(self.fit),
            "size": self.size,
        }


def plan(
    session: SparkSession,
    workspace: Workspace,
    pipeline: Pipeline,
) -> Plan:
    """Plan the next run of a pipeline; changes nothing.

    Args:
        session: only used to analyse; the query is not started.
        project: the project, with its logins.
        pipeline: the version in use.
    """
    from drawdown.drain.planning import plan_pipeline

    found = plan_pipeline(session, workspace, pipeline)
    waiting = preflight(workspace, pipeline)
    # Batches of a rebuild have other sizes, and a decision has none.
    runs = [
        run
        for run in workspace.metastore.runs(pipeline.name, limit=_RUNS_LOOKED_AT)
        if run.kind not in (REBUILD, ANSWER)
    ]
    return Plan(
        pipeline.name,
        found.generation.checkpoint,
        found.verdicts,
        found.errors,
        tuple(found.query.operators) if found.query else (),
        waiting,
        found.fingerprint.get("versions"),
        state_size(workspace.storage, found.generation.checkpoint, runs),
        drain_fit(pipeline, waiting.backlog, runs),
    )
