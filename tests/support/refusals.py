"""Refusals: the exact error, and nothing touched."""

from __future__ import annotations

import pytest

from drawdown.engine.planning import PipelinePlan, plan_pipeline
from drawdown.errors import DrawdownError, SpecError
from drawdown.spec import load_pipeline
from tests.support.workspace import Workspace


def refused(workspace: Workspace, name: str, error_id: str, kind: type[DrawdownError]) -> DrawdownError:
    """`drawdown plan` says so, and a drain of the pipeline ends with this error; storage, checkpoint and
    batches are as they were."""
    before, recorded = workspace.everything(), _recorded(workspace, name)
    plan = planned(workspace, name)
    assert error_id in {verdict.id for verdict in plan.verdicts if verdict.level == "refused"}, plan.verdicts
    assert (plan.errors[0].id, type(plan.errors[0])) == (error_id, kind)
    error = workspace.drain(name)[0].error
    assert error is not None, f"{name} was not refused"
    assert (error.id, type(error)) == (error_id, kind), str(error)
    assert error.do, "a refusal says what to do"
    assert workspace.everything() == before
    assert _recorded(workspace, name) == recorded
    return error


def planned(workspace: Workspace, name: str) -> PipelinePlan:
    """What `drawdown plan` finds, with nothing touched."""
    before, recorded = workspace.everything(), _recorded(workspace, name)
    assert workspace.spark is not None
    project = workspace.project
    with workspace.metastore() as metastore:
        plan = plan_pipeline(workspace.spark, project, load_pipeline(project, name), metastore)
    assert workspace.everything() == before
    assert _recorded(workspace, name) == recorded
    return plan


def refused_spec(workspace: Workspace, name: str, spec: str, error_id: str, **files: str) -> SpecError:
    """The spec is refused when it is read, before anything could be touched."""
    with pytest.raises(SpecError) as caught:
        workspace.pipeline(name, spec, **files)
    assert caught.value.id == error_id, str(caught.value)
    return caught.value


def _recorded(workspace: Workspace, name: str) -> object:
    with workspace.metastore() as metastore:
        checkpoint = metastore.active_checkpoint(name)
        return checkpoint, metastore.batches(name, checkpoint.generation) if checkpoint else []
