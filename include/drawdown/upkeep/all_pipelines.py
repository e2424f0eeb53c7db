"""The upkeep of many pipelines, one after the other; one that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from drawdown.errors import DrawdownError
from drawdown.metastore import this_process
from drawdown.plan.table_readers import Readers
from drawdown.plan.version_in_use import in_use
from drawdown.spec import Pipeline
from drawdown.upkeep.one_pipeline import Tidied, UpkeepRequest, tidy
from drawdown.workspace import Workspace


def tidy_all(
    workspace: Workspace,
    pipelines: Sequence[Pipeline],
    origin: Mapping[str, Any],
    new_run_id: Callable[[], str],
    *,
    dry: bool = False,
) -> Iterator[Tidied]:
    """What was done for each, in their order.

    Args:
        origin: kept in the run records.
        new_run_id: makes the id of each.

    Raises:
        SourceError: the metastore cannot be reached.
    """
    readers = Readers.of(workspace)
    for pipeline in pipelines:
        try:
            version = in_use(workspace, pipeline)
        except DrawdownError as error:
            yield Tidied(pipeline.name, error=error)
            continue
        asked = UpkeepRequest(new_run_id(), this_process(), origin, dry)
        yield tidy(workspace, version, readers, asked)
