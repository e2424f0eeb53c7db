"""Refuses to take a checkpoint back behind its sink, because rows would be written a second time.

A sink skips batch ids that it has seen. Batches that are planned again under these ids may contain other
rows, which would be missing or duplicated. So either the sink goes back as well, or the checkpoint stays.
"""

from __future__ import annotations

from collections.abc import Collection

from drawdown.errors import RefusedError
from drawdown.metastore.records import StagedTable
from drawdown.recovery.repair.faults import shown_batches
from drawdown.workspace import Generation

_CAN_GO_BACK = frozenset({"delta", "parquet", "orc", "json", "csv", "text"})


def can_go_back(generation: Generation) -> bool:
    """Whether `--sink` can reset this sink."""
    return generation.pipeline.sink.format in _CAN_GO_BACK


def refuse_ahead(generation: Generation, last: int, command: str) -> None:
    """Refuse if the output or the quarantine contains batches after `last`.

    Args:
        command: the requested command, repeated in the remedy.

    Raises:
        RefusedError: ``sink.ahead``, with the two ways out.
        SourceError: the sink cannot be reached.
    """
    shown = {table: batch for table, batch in shown_batches(generation, settled=True).items() if batch > last}
    if not shown:
        return
    ahead = max(shown.values())
    held_by = " and ".join("sink" if table == "output" else "quarantine" for table in shown)
    raise RefusedError(
        "sink.ahead",
        f"the {held_by} of {generation.pipeline.name} has batches up to {ahead}, but the checkpoint would"
        f" go back to batch {last}: later batches would be written a second time",
        where=f"pipeline {generation.pipeline.name}, generation {generation.number}",
        do=f"{_sink_back(generation, last, command, shown)}; or leave the sink, and read everything again"
        " into a new pipeline folder with its own sink",
    )


def _sink_back(generation: Generation, last: int, command: str, ahead: Collection[StagedTable]) -> str:
    if "output" not in ahead:
        return f"also reset the quarantine: `{command} --sink`"
    if can_go_back(generation):
        return f"also reset the sink: `{command} --sink`"
    sink_format: str = generation.pipeline.sink.format
    if sink_format.startswith("postgres"):
        flag = " --sink" if "quarantine" in ahead else ""
        return (
            f"restore the database to a backup in which batch {last} is the last (its ledger goes back with"
            f" it), then `{command}{flag}`"
        )
    return (
        "rows in this sink cannot be undone; to be able to come back to the present state, take a"
        " snapshot first: "
    ) + (f"`drawdown checkpoint snapshot {generation.pipeline.name}`")
