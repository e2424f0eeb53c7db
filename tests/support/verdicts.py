"""What `drawdown plan` says of a pipeline, without a drain."""

from __future__ import annotations

from drawdown.plan.verdicts import PlanVerdict
from tests.support.refusals import planned
from tests.support.workspace import Workspace


def verdicts(workspace: Workspace, name: str) -> dict[str, PlanVerdict]:
    """By id; a refused pipeline raises its refusal."""
    plan = planned(workspace, name)
    plan.accepted()
    return {verdict.id: verdict for verdict in plan.verdicts}


def warnings(workspace: Workspace, name: str) -> dict[str, PlanVerdict]:
    return {id: verdict for id, verdict in verdicts(workspace, name).items() if verdict.level == "warning"}
