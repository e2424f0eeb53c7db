"""Refusals: the exact error, and nothing touched."""

from __future__ import annotations

import pytest

from drawdown.errors import DrawdownError, SpecError
from tests.support.workspace import Workspace


def refused(workspace: Workspace, name: str, error_id: str, kind: type[DrawdownError]) -> DrawdownError:
    """A drain of the pipeline ends with this error; storage, checkpoint and batches are as they were."""
    before, recorded = workspace.everything(), _recorded(workspace, name)
    error = workspace.drain(name)[0].error
    assert error is not None, f"{name} was not refused"
    assert (error.id, type(error)) == (error_id, kind), str(error)
    assert error.do, "a refusal says what to do"
    assert workspace.everything() == before
    assert _recorded(workspace, name) == recorded
    return error


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
