"""The upkeep of many pipelines, one after the other; one that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from drawdown.errors import DrawdownError
from drawdown.metastore import Metastore, this_process
from drawdown.plan.readers import Readers
from drawdown.plan.rebuild import in_use
from drawdown.spec import Pipeline, Project
from drawdown.upkeep.tidy import Asked, Tidied, tidy


def tidy_all(
    project: Project,
    pipelines: Sequence[Pipeline],
    metastore: Metastore,
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
    readers = Readers.of(project, metastore)
    for pipeline in pipelines:
        try:
            version = in_use(project, metastore, pipeline)
        except DrawdownError as error:
            yield Tidied(pipeline.name, error=error)
            continue
        asked = Asked(new_run_id(), this_process(), origin, dry)
        yield tidy(project, version, metastore, readers, asked)
