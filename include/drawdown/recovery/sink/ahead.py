"""When the sink is ahead of where a checkpoint would go back to, going back writes rows a second time.

A sink skips a batch id that it has seen. Batches that are planned again under ids it has may hold other rows:
those would be missing, or be there twice. So either the sink goes back as well, or the checkpoint stays.
"""

from __future__ import annotations

from collections.abc import Collection

from drawdown.errors import RefusedError
from drawdown.metastore.records import StagedTable
from drawdown.recovery.faults import shown_batches
from drawdown.workspace import Generation

_CAN_GO_BACK = frozenset({"delta", "parquet", "orc", "json", "csv", "text"})


def can_go_back(generation: Generation) -> bool:
    """Whether `--sink` can take the sink back by itself."""
    return generation.pipeline.sink.format in _CAN_GO_BACK


def refuse_ahead(generation: Generation, last: int, command: str) -> None:
    """Refuse when the output or the quarantine holds batches behind `last`.

    Args:
        command: what was asked for; it is named again in the way out.

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
        f"the {held_by} of {generation.pipeline.name} has batches up to {ahead}, and the checkpoint would go"
        f" back to batch {last}: what comes behind it would be written a second time",
        where=f"pipeline {generation.pipeline.name}, generation {generation.number}",
        do=f"{_sink_back(generation, last, command, shown)}; or let the sink be, and read everything again"
        " into a new pipeline folder with a sink of its own",
    )


def _sink_back(generation: Generation, last: int, command: str, ahead: Collection[StagedTable]) -> str:
    if "output" not in ahead:
        return f"take the quarantine back as well: `{command} --sink`"
    if can_go_back(generation):
        return f"take the sink back as well: `{command} --sink`"
    sink_format: str = generation.pipeline.sink.format
    if sink_format.startswith("postgres"):
        flag = " --sink" if "quarantine" in ahead else ""
        return (
            f"restore the database to a backup in which batch {last} is the last (its ledger goes back with"
            f" it), then `{command}{flag}`"
        )
    return "what this sink has taken cannot be taken back; a snapshot of now keeps the way open: " + (
        f"`drawdown checkpoint snapshot {generation.pipeline.name}`"
    )
