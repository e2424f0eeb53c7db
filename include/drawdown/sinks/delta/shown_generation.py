"""Which generation a Delta table shows, by its own log: a restored metastore may name another one.

A swap and a roll back each leave a transaction id in the table, which stays as long as the table exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import RefusedError
from drawdown.layout import checkpoint_of
from drawdown.metastore.records import Checkpoint, StagedTable
from drawdown.sinks.delta.shadow import ShadowTable, shadow_tables
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage
from drawdown.workspace import Workspace

_CHECKPOINT = re.compile(r"checkpoint-([0-9]+)/metadata$")


def refuse_other_generation(
    workspace: Workspace,
    pipeline: Pipeline,
) -> None:
    """Refuse when the table shows another generation than the metastore calls live; changes nothing.

    The rows that the live query would add are in the table already: the other generation has read them.

    Raises:
        RefusedError: ``metastore.behind``: an older copy of the metastore was put back.
        SourceError: the table cannot be reached.
    """
    there = {each.generation: each for each in workspace.metastore.generations(pipeline.name)}
    live = [number for number, each in there.items() if each.state == "live"]
    # An unfinished swap or roll back is checked by the command that completes it.
    unfinished = any(each.state in ("swapping", "leaving") for each in there.values())
    if pipeline.sink.format != "delta" or pipeline.apart or unfinished or not live:
        return
    numbers = {*there, *_with_a_checkpoint(workspace.project, pipeline)}
    if len(numbers) == 1:
        return
    for table, shown in _shown(workspace.project, pipeline, sorted(numbers, reverse=True)):
        if shown not in (None, live[0]):
            raise _behind(
                pipeline, f"generation {shown} was swapped in", live[0], table, _swapped(there, shown)
            )
        if any(
            each.table == table and each.is_back for each in _tables(workspace.project, pipeline, live[0])
        ):
            said = f"generation {live[0]} was rolled back"
            raise _behind(
                pipeline, said, live[0], table, f"`drawdown rebuild rollback {pipeline.name} --why ...`"
            )


def is_swapped_in(project: Project, pipeline: Pipeline, generation: int) -> bool:
    """Whether the table shows the rows of a generation that was a shadow."""
    return any(each.is_swapped and not each.is_back for each in _tables(project, pipeline, generation))


def _shown(
    project: Project, pipeline: Pipeline, newest_first: list[int]
) -> Iterator[tuple[StagedTable, int | None]]:
    """Yield for each table the generation that was swapped in last; None when it shows the first one."""
    tables = [_tables(project, pipeline, number) for number in newest_first]
    for of_table in zip(*tables, strict=True):
        if DeltaTableFiles(of_table[0].uri).exists():
            found = (each.generation for each in of_table if each.is_swapped and not each.is_back)
            yield of_table[0].table, next(found, None)


def _tables(project: Project, pipeline: Pipeline, generation: int) -> list[ShadowTable]:
    return shadow_tables(project, pipeline.as_shadow(generation, {}), generation)


def _with_a_checkpoint(project: Project, pipeline: Pipeline) -> Iterator[int]:
    """Yield generations that have a checkpoint: a restored metastore lacks rebuilds from after its copy."""
    storage = Storage.of(project)
    for info in storage.list_files(f"{checkpoint_of(pipeline.name, '*')}/metadata"):
        if found := _CHECKPOINT.search(info.relative):
            yield int(found[1])


def _swapped(there: dict[int, Checkpoint], shown: int | None) -> str | None:
    known = there.get(shown) if shown is not None else None
    if known is None or known.state != "shadow":
        return None
    return f"`drawdown rebuild approve {known.pipeline} --why ...`"


def _behind(pipeline: Pipeline, what: str, live: int, table: StagedTable, again: str | None) -> RefusedError:
    which = "table" if table == "output" else "quarantine"
    otherwise = (
        f"{again}, which finds it done and records it again"
        if again
        else "read everything again into a new pipeline folder with its own sink"
    )
    return RefusedError(
        "metastore.behind",
        f"the {which} of {pipeline.name} says that {what}, but the metastore has no record of it: its live"
        f" generation is {live}",
        where=f"pipeline {pipeline.name}, generation {live}",
        do=f"restore a newer copy of the metastore, if you have one; otherwise {otherwise}",
    )
