"""Resets a sink to an earlier batch, so that a checkpoint can go back with it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from drawdown.changes.protocol import transaction_id
from drawdown.checkpoint import FileLog, delete_with_checksum
from drawdown.delta.history import DeltaHistory
from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import RefusedError
from drawdown.fault_points import durable
from drawdown.metastore.records import Change, Lease, StagedTable
from drawdown.plan.downstream import streaming_readers, streaming_readers_of_files
from drawdown.recovery.repair.faults import shown_batches, sink_log
from drawdown.recovery.sink.ahead import can_go_back, refuse_ahead
from drawdown.sinks.locations import output_uri, quarantine_uri
from drawdown.values.commands import rebuild
from drawdown.workspace import Generation


@dataclass(frozen=True)
class TakenBack:
    """What a person has to take care of afterwards.

    Attributes:
        replays: intervals whose replays were undone with the batches.
        readers: pipelines that stream the table and will read repeated rows a second time.
    """

    replays: list[str] = field(default_factory=list)
    readers: list[str] = field(default_factory=list)


def take_sink_back(generation: Generation, last: int, lease: Lease) -> TakenBack:
    """Reset the output and the quarantine to their content after batch `last`.

    Delta: one commit that restores that table version, with the transaction id's version of that time. File
    sinks: newer entries leave the sink's log; the files stay and are not read. The caller has called
    `refuse_stuck` and set a mark: if interrupted between two tables, the same call completes it.

    Returns:
        What was undone with it; the lease's run record lists it, too.

    Raises:
        RefusedError: ``lease.lost``. SourceError: the sink cannot be reached or written.
    """
    taken = TakenBack()
    for table in _ahead(generation, last):
        if table == "output":
            taken = TakenBack(_replays_behind(generation, last), _readers(generation))
            _note(generation, taken, lease)
        with durable("recovery.sink"):
            if _is_table(generation, table):
                _restore(generation, table, last, lease)
            else:
                log = sink_log(generation)
                assert log is not None
                generation.metastore.check_lease(lease)
                _cut_log(generation, log, last)
    return taken


def _restore(generation: Generation, table: StagedTable, last: int, lease: Lease) -> None:
    metastore, name = generation.metastore, generation.pipeline.name
    history = _history(generation, table)
    version, held = _version(generation, table, last)
    change = Change(
        uuid.uuid4().hex, name, table, generation.number, "restore", lease.run_id,
        scope={"version": version, "batch": last}, based_on=history.newest,
    )  # fmt: skip
    change = metastore.begin_change(lease, change)
    history.restore(
        version, change, {transaction_id(generation.pipeline.name_in_sink, generation.number, table): held}
    )
    metastore.end_changes([change.change_id], "committed")


def refuse_stuck(generation: Generation, last: int) -> None:
    """Refuse what `take_sink_back` cannot do, before any table is touched.

    Raises:
        RefusedError: ``sink.ahead`` for a sink that cannot go back; ``sink.between``: no version of it has
            exactly the batches up to `last`; ``sink.vacuumed``: files of that version are gone.
        SourceError: the sink cannot be reached.
    """
    ahead = _ahead(generation, last)
    if "output" in ahead and not can_go_back(generation):
        refuse_ahead(generation, last, f"drawdown checkpoint show {generation.pipeline.name}")
    stop = nearest_stop(generation, last)
    if stop != last:
        raise _between(generation, last, stop)
    for table in ahead:
        if _is_table(generation, table):
            version, _ = _version(generation, table, last)
            _history(generation, table).refuse_vacuumed(
                version,
                "restore them from a copy; or leave the sink, and read everything again into a new"
                " pipeline folder with a sink of its own",
            )


def refuse_readers(generation: Generation, last: int, again: str) -> None:
    """Refuse if streams over the table would read rows a second time; before anything is touched.

    Args:
        again: the given command; with ``--yes`` this check is skipped.

    Raises:
        RefusedError: ``sink.readers``. SourceError: the sink or a checkpoint cannot be reached.
    """
    if "output" not in _ahead(generation, last):
        return
    if readers := _readers(generation):
        name = generation.pipeline.name
        raise RefusedError(
            "sink.readers",
            f"the output of {name} is read as a stream by {', '.join(readers)}: rows of batches after"
            f" {last} are written again, so they would read them twice",
            where=f"pipeline {name}, generation {generation.number}",
            do=f"`{again} --yes`, then `drawdown run {name}` and "
            + ", ".join(map(rebuild, readers))
            + ", which reads the table as it is then",
        )


def refuse_behind(generation: Generation, shown_by_then: Mapping[StagedTable, int], what: str) -> None:
    """Refuse to go to a batch ahead of the sink: the rows in between would never be written.

    Args:
        shown_by_then: by table, the last batch that it must contain.
        what: the target of the checkpoint.

    Raises:
        RefusedError: ``sink.behind``. SourceError: the sink cannot be reached.
    """
    shown = shown_batches(generation)
    for table, wanted in shown_by_then.items():
        if shown[table] < wanted:
            name = generation.pipeline.name
            raise RefusedError(
                "sink.behind",
                f"the {'sink' if table == 'output' else 'quarantine'} of {name} was reset to batch"
                f" {shown[table]}, but {what} is after batch {wanted}: the batches in between would be"
                " missing",
                where=f"pipeline {name}, generation {generation.number}",
                do=f"go back at least as far: `drawdown checkpoint show {name}` lists the batches and the"
                " snapshots",
            )


def last_shown(batches: Iterable[int], files: Iterable[tuple[int, StagedTable]]) -> dict[StagedTable, int]:
    """Return, by table, the last of these published batches with a file for it."""
    published, found = set(batches), dict[StagedTable, int]()
    for batch, table in files:
        if batch in published:
            found[table] = max(batch, found.get(table, -1))
    return found


def nearest_stop(generation: Generation, last: int) -> int:
    """Return the batch nearest to `last`, at or before it, to which the sink can be reset; -1 if none.

    Raises:
        SourceError: the sink cannot be reached.
    """
    ahead = _ahead(generation, last)
    while last >= 0:
        stop = min((_stop(generation, table, last) for table in ahead), default=last)
        if stop == last:
            break
        last = stop
    return last


def _ahead(generation: Generation, last: int) -> list[StagedTable]:
    return [table for table, batch in shown_batches(generation).items() if batch > last]


def _stop(generation: Generation, table: StagedTable, last: int) -> int:
    if table == "output" and (log := sink_log(generation)) is not None:
        # A compacted entry also contains the files of all batches before it.
        return last if FileLog(generation.storage, log, {}).compacted() <= last else -1
    if table == "output" and not can_go_back(generation):
        return -1
    version, held = _version(generation, table, last)
    if held < 0 and generation.checkpoint is not None and "before" in generation.checkpoint.rebuild:
        # Versions before the swap contain another generation's rows.
        return held
    published = [batch.batch_id for batch in generation.batches(("published",), first_batch=held + 1)]
    if generation.staged_files((batch for batch in published if batch <= last), table):
        return held
    # A slice released out of order comes after later batches, so earlier versions lack it.
    app_id = transaction_id(generation.pipeline.name_in_sink, generation.number, table)
    late = _history(generation, table).late_releases(app_id, version)
    return min((first - 1 for first in late if first <= last), default=last)


def _is_table(generation: Generation, table: StagedTable) -> bool:
    """Whether the table is a Delta table, which has versions."""
    return table == "quarantine" or generation.pipeline.sink.format == "delta"


def _version(generation: Generation, table: StagedTable, last: int) -> tuple[int, int]:
    app_id = transaction_id(generation.pipeline.name_in_sink, generation.number, table)
    return _history(generation, table).version_with(app_id, last)


def _replays_behind(generation: Generation, last: int) -> list[str]:
    """Return intervals whose replays are undone with the batches; only tables can be replayed."""
    if not _is_table(generation, "output"):
        return []
    version, _ = _version(generation, "output", last)
    return list(dict.fromkeys(_history(generation, "output").replays(version)))


def _readers(generation: Generation) -> list[str]:
    workspace, pipeline = generation.workspace, generation.pipeline
    if not _is_table(generation, "output"):
        return streaming_readers_of_files(workspace, pipeline)
    return streaming_readers(workspace, pipeline, DeltaTableFiles(_uri(generation, "output")).table_id)


def _note(generation: Generation, taken: TakenBack, lease: Lease) -> None:
    name = generation.pipeline.name
    notices = [
        {
            "id": "sink.replays-undone",
            "what": f"the replay of {interval} was undone with the later batches",
            "about": interval,
            "do": "drawdown backfill {} --from {} --to {}".format(name, *interval.split(" to ")),
        }
        for interval in taken.replays
    ]
    notices += [
        {
            "id": "sink.rows-again",
            "what": f"{reader} streams the output of {name}: it reads rows of repeated batches twice",
            "about": reader,
            "do": f"after the next run of {name}: {rebuild(reader)}",
        }
        for reader in taken.readers
    ]
    if notices:
        generation.metastore.update_run(lease.run_id, notices=notices)


def _history(generation: Generation, table: StagedTable) -> DeltaHistory:
    return DeltaHistory(generation.storage, _uri(generation, table))


def _uri(generation: Generation, table: StagedTable) -> str:
    uri = {"output": output_uri, "quarantine": quarantine_uri}[table]
    return uri(generation.project, generation.pipeline)


def _cut_log(generation: Generation, folder: str, last: int) -> None:
    names = FileLog(generation.storage, folder, {}).names()
    for name in [name for name, entry in reversed(names.items()) if entry > last]:
        delete_with_checksum(generation.storage, f"{folder}/{name}")


def _between(generation: Generation, last: int, stop: int) -> RefusedError:
    name = generation.pipeline.name
    return RefusedError(
        "sink.between",
        f"the sink of {name} cannot go back to exactly batch {last}: it was written together with later ones",
        where=f"pipeline {name}, generation {generation.number}",
        do=f"go back further: `drawdown checkpoint rewind {name} --to {stop} --sink`"
        if stop >= 0
        else "leave the sink, and read everything again into a new pipeline folder with its own sink",
    )
