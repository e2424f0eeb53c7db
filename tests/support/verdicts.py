"""What `drawdown plan` says of a pipeline, without a drain."""

from __future__ import annotations

from drawdown.plan_verdicts import PlanVerdict
from tests.support.refusals import planned
from tests.support.sandbox import Sandbox


def verdicts(sandbox: Sandbox, name: str) -> dict[str, PlanVerdict]:
    """By id; a refused pipeline raises its refusal."""
    plan = planned(sandbox, name)
    plan.accepted()
    return {verdict.id: verdict for verdict in plan.verdicts}


def warnings(sandbox: Sandbox, name: str) -> dict[str, PlanVerdict]:
    return {id: verdict for id, verdict in verdicts(sandbox, name).items() if verdict.level == "warning"}
