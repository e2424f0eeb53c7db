"""Refusals: the exact error, and nothing touched."""

from __future__ import annotations

import pytest

from drawdown.drain.planning import PipelinePlan, plan_pipeline
from drawdown.errors import DrawdownError, SpecError
from drawdown.plan.version_in_use import in_use
from drawdown.spec import load_pipeline
from drawdown.workspace import Workspace
from tests.support.sandbox import Sandbox


def refused(sandbox: Sandbox, name: str, error_id: str, kind: type[DrawdownError]) -> DrawdownError:
    """`drawdown plan` says so, and a drain of the pipeline ends with this error; storage, checkpoint and
    batches are as they were."""
    before, recorded = sandbox.everything(), _recorded(sandbox, name)
    plan = planned(sandbox, name)
    assert error_id in {verdict.id for verdict in plan.verdicts if verdict.level == "refused"}, plan.verdicts
    assert (plan.errors[0].id, type(plan.errors[0])) == (error_id, kind)
    error = sandbox.drain(name)[0].error
    assert error is not None, f"{name} was not refused"
    assert (error.id, type(error)) == (error_id, kind), str(error)
    assert error.do, "a refusal says what to do"
    assert sandbox.everything() == before
    assert _recorded(sandbox, name) == recorded
    return error


def planned(sandbox: Sandbox, name: str) -> PipelinePlan:
    """What `drawdown plan` finds, with nothing touched."""
    before, recorded = sandbox.everything(), _recorded(sandbox, name)
    assert sandbox.spark is not None
    project = sandbox.project
    with Workspace.open(project) as workspace:
        plan = plan_pipeline(sandbox.spark, workspace, in_use(workspace, load_pipeline(project, name)))
    assert sandbox.everything() == before
    assert _recorded(sandbox, name) == recorded
    return plan


def refused_spec(sandbox: Sandbox, name: str, spec: str, error_id: str, **files: str) -> SpecError:
    """The spec is refused when it is read, before anything could be touched."""
    with pytest.raises(SpecError) as caught:
        sandbox.pipeline(name, spec, **files)
    assert caught.value.id == error_id, str(caught.value)
    return caught.value


def _recorded(sandbox: Sandbox, name: str) -> object:
    with sandbox.metastore() as metastore:
        checkpoint = metastore.active_checkpoint(name)
        return checkpoint, metastore.batches(name, checkpoint.generation) if checkpoint else []
