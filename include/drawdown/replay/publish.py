"""Replacing one event-time interval of a sink by recomputed rows, while drains go on.

The replay has read up to a certain batch, its basis. Batches published since then may have added rows of the
interval that the replay has not read: it is then *overtaken*, and nothing is replaced. Replacing the same
interval twice gives the same table.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from drawdown.changes.protocol import NewRows, transaction_id
from drawdown.errors import RefusedError
from drawdown.kinds import code_at
from drawdown.layout import replay_folder
from drawdown.metastore import Metastore
from drawdown.metastore.records import (
    UNPUBLISHED,
    BatchStatus,
    Change,
    Lease,
    QuarantineDecision,
    StagedFile,
    StagedTable,
)
from drawdown.quarantine.row_states import SetAside, folder_of, write_keys
from drawdown.recovery.repair.advice import refuse_cut_off
from drawdown.replay.plan import basis_at, refuse_open
from drawdown.sinks.targets import replaceable_of, target_of
from drawdown.sources.replay_basis import ReplayBasis, ReplayedSource, replay_of
from drawdown.spec import Pipeline
from drawdown.storage import Storage
from drawdown.values.interval import Interval
from drawdown.values.json_text import read_json
from drawdown.values.moments import of_statistics
from drawdown.workspace import Generation, Workspace

# Delta cuts times in statistics to milliseconds.
_CUT = timedelta(milliseconds=1)


def staged_folder(pipeline: str, interval: Interval) -> str:
    """Return the folder where a replay's rows wait for their audit, relative to the storage root."""
    return replay_folder(pipeline, interval.name)


def possible_until(workspace: Workspace, pipeline: Pipeline) -> datetime:
    """The latest end of an interval that can be replayed now; only Spark knows how far state reaches.

    Raises:
        RefusedError: ``replay.undeclared``, ``replay.nothing-visible``. SourceError: as `stand_on`.
    """
    return _visible(workspace, pipeline).closed - replay_of(pipeline).lookahead.delta


def stand_on(workspace: Workspace, pipeline: Pipeline, interval: Interval) -> ReplayBasis:
    """Return the basis of a replay of this interval that starts now.

    Raises:
        RefusedError: ``replay.undeclared``, ``replay.nothing-visible``, ``replay.open``, ``replay.waiting``.
        SourceError: the sink cannot be reached.
    """
    basis = _visible(workspace, pipeline)
    refuse_cut_off(Generation(workspace, pipeline, basis.checkpoint))
    refuse_open(pipeline, interval, basis)
    _refuse_waiting(workspace.metastore, pipeline, basis, interval)
    return basis


def _visible(workspace: Workspace, pipeline: Pipeline) -> ReplayBasis:
    replay_of(pipeline)
    checkpoint = workspace.metastore.active_checkpoint(pipeline.name)
    last = -1
    if checkpoint is not None and (target := target_of(workspace.project, pipeline, "output")) is not None:
        last = target.published_batch(transaction_id(pipeline.name_in_sink, checkpoint.generation, "output"))
        # A batch without rows (only late events, for example) needs no sink commit.
        newer = workspace.metastore.batches(
            pipeline.name, checkpoint.generation, ("published",), first_batch=last + 1
        )
        last = max([last, *(batch.batch_id for batch in newer)])
    return basis_at(workspace, pipeline, checkpoint, last)


def refuse_replay(workspace: Workspace, pipeline: Pipeline, interval: Interval) -> None:
    """Refuse a replay of this interval, as far as that is possible without Spark.

    Raises:
        RefusedError: as `stand_on`, and the refusals of each kind of source.
        SourceError: as `stand_on`; a broker does not answer, a table cannot be read.
    """
    basis = stand_on(workspace, pipeline, interval)
    for name in pipeline.streaming_sources:
        of = ReplayedSource(workspace, pipeline, basis, interval, name)
        code_at(of.code.check)(of)


def _refuse_waiting(metastore: Metastore, pipeline: Pipeline, basis: ReplayBasis, interval: Interval) -> None:
    """With ``ordered: false`` a batch before the last visible one may wait: its rows would come twice.

    With ``publish: direct`` its output is visible, and what it set aside waits: rows that a changed rule lets
    in would come with the replay, and be open once the batch is finished.
    """
    direct = pipeline.sink.publish == "direct"
    statuses: tuple[BatchStatus, ...] = ("staged", "committed") if direct else UNPUBLISHED
    waiting = metastore.batches(pipeline.name, basis.checkpoint.generation, statuses)
    ids = [batch.batch_id for batch in waiting if batch.batch_id <= basis.batch.batch_id]
    table: StagedTable = "quarantine" if direct else "output"
    files = metastore.staged_files(pipeline.name, basis.checkpoint.generation, ids, table=table)
    column = "event_time" if direct else str(pipeline.sink.time_column)
    if held := sorted({number for number, file in files if _may_hold(file, column, interval)}):
        raise RefusedError(
            "replay.waiting",
            f"batch {held[0]} of {pipeline.name} contains rows of {interval} and is not published yet",
            where=f"pipeline {pipeline.name}",
            do=f"`drawdown release {pipeline.name} --why ...` or `drawdown discard {pipeline.name} --why ...`"
            if any(batch.batch_id == held[0] and batch.status == "held" for batch in waiting)
            else f"`drawdown run {pipeline.name}`",
        )


@dataclass(frozen=True)
class Replacement:
    """One interval's recomputed rows, which wait in a folder of parquet files.

    Attributes:
        info: notes for the history of the table.
        now_in: open rows of the quarantine that are among the recomputed ones.
        decided: the decisions about rows of the quarantine that were obeyed, see `decided_rows`.
    """

    interval: Interval
    basis: ReplayBasis
    folder: str
    info: Mapping[str, str]
    now_in: Sequence[SetAside] = ()
    decided: frozenset[str] = frozenset()


def decided_rows(metastore: Metastore, pipeline: Pipeline) -> dict[str, QuarantineDecision]:
    """Return all decisions about quarantined rows, by id: a replay must respect them."""
    decisions = metastore.decisions(pipeline.name)
    return {each.decision_id: each for each in decisions if each.kind != "interval"}


def replace_interval(
    workspace: Workspace, lease: Lease, pipeline: Pipeline, replacement: Replacement
) -> bool:
    """Make the recomputed rows visible in place of those of the interval.

    Args:
        lease: the lease under which replays of the pipeline commit, one at a time.

    Returns:
        False if the replay was overtaken.

    Raises:
        RefusedError: ``lease.lost``; ``checkpoint.torn`` while a rewind or a restore is unfinished.
        SourceError: the sink cannot be reached or written; the same call may be made again.
    """
    generation, storage = replacement.basis.checkpoint.generation, workspace.storage

    def overtaken(last: int) -> bool:
        live = workspace.metastore.active_checkpoint(pipeline.name)
        if live is None or live.generation != generation:
            # A rebuild was swapped in meanwhile.
            return True
        refuse_cut_off(Generation(workspace, pipeline, live))
        stands = workspace.metastore.batch(pipeline.name, generation, replacement.basis.batch.batch_id)
        if stands is None or stands.epoch != replacement.basis.batch.epoch:
            # A rewind has undone the last batch that was read; it may have been replayed with other rows.
            return True
        if decided_rows(workspace.metastore, pipeline).keys() != replacement.decided:
            return True
        visible.append(last)
        newer = range(replacement.basis.batch.batch_id + 1, last + 1)
        files = workspace.metastore.staged_files(pipeline.name, generation, newer, table="output")
        return any(_may_hold(file, column, replacement.interval) for _, file in files)

    target, column = replaceable_of(workspace.project, pipeline), str(pipeline.sink.time_column)
    app_id = transaction_id(pipeline.name_in_sink, generation, "output")
    files = staged_in(storage, replacement.folder)
    begun: list[Change] = []
    visible: list[int] = []

    def begin(based_on: int | None) -> Change:
        scope = {
            "interval": [each.isoformat() for each in (replacement.interval.start, replacement.interval.end)]
        }
        change = Change(
            uuid.uuid4().hex, pipeline.name, "output", generation, "replay", lease.run_id,
            scope=scope, based_on=based_on,
        )  # fmt: skip
        begun.append(workspace.metastore.begin_change(lease, change))
        if replacement.now_in:
            # Before the commit that closes these rows; without the commit they stay open.
            closing = _closing(workspace.storage, pipeline, begun[-1], replacement.now_in, visible[-1])
            workspace.metastore.note_decision(lease, closing)
        return begun[-1]

    done = target.replace(
        NewRows(replacement.interval, files, column, app_id, lease.name, overtaken, begin, replacement.info)
    )
    workspace.metastore.end_changes(
        [change.change_id for change in begun], "committed" if done else "given-up"
    )
    return done


def _closing(
    storage: Storage, pipeline: Pipeline, change: Change, rows: Sequence[SetAside], visible: int
) -> QuarantineDecision:
    """Return the decision by which a change closes rows of the quarantine; writes the file of their keys."""
    keys = write_keys(storage, folder_of(pipeline, change.change_id), rows)
    return QuarantineDecision(
        change.change_id, pipeline.name, "interval", change.generation, len(rows), keys, visible,
        origin={"run": change.run_id, **change.scope},
    )  # fmt: skip


def staged_in(storage: Storage, folder: str) -> list[StagedFile]:
    """Return the files that Spark has written into a folder."""
    import pyarrow.parquet as pq

    found = []
    for info in storage.walk(folder):
        if info.name.endswith(".parquet"):
            with storage.open(info.relative) as stream:
                rows = pq.read_metadata(stream).num_rows
            found.append(StagedFile("output", info.path, info.size, rows))
    return found


def _may_hold(file: StagedFile, column: str, interval: Interval) -> bool:
    """Whether a staged file can contain a row of the interval, by its statistics; true without statistics."""
    stats = read_json(str(file.action.get("stats") or "{}"))
    if not file.rows or stats.get("nullCount", {}).get(column) == file.rows:
        # A row without a time belongs to no interval.
        return False
    least, most = (stats.get(which, {}).get(column) for which in ("minValues", "maxValues"))
    if least is None or most is None:
        return True
    return of_statistics(least) < interval.end and of_statistics(most) + _CUT >= interval.start
