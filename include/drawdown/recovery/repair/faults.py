"""Finds faults in a generation's files, and which batches its sink shows."""

from __future__ import annotations

from collections.abc import Iterator

from drawdown.changes.protocol import transaction_id
from drawdown.checkpoint import CheckpointFault, FileLog, Verification, verify_file_log
from drawdown.checkpoint.checksums import checksum_path
from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import RefusedError, SourceError
from drawdown.metastore.records import StagedTable
from drawdown.sinks.kafka.ledger import KafkaLedger
from drawdown.sinks.locations import output_uri, quarantine_uri
from drawdown.sinks.targets import target_of
from drawdown.workspace import Generation

_FILE_SINKS = frozenset({"parquet", "orc", "json", "csv", "text"})
_SINK_LOG = "_spark_metadata"
_SETTLED_WITHIN = 60.0
"""Seconds that a transaction which a dead publish left open may take to end by itself, see its timeout."""


def sink_log(generation: Generation) -> str | None:
    """The folder of a file sink's log, relative to the storage root; None for other sinks."""
    if generation.pipeline.sink.format not in _FILE_SINKS:
        return None
    return f"{generation.storage.relative(output_uri(generation.project, generation.pipeline))}/{_SINK_LOG}"


def keeps_state(generation: Generation) -> bool:
    """Whether the query has stateful operators, according to the fingerprint."""
    return bool(generation.fingerprint.get("state.operators"))


def keeps_keyed_state(generation: Generation) -> bool:
    """Whether every stateful operator keeps its state by keys, so that each of its partitions has some."""
    operators: list[str] = generation.fingerprint.get("state.operators") or []
    # As query/state/operators.py names them.
    whole = [each for each in operators if each.endswith(" by nothing") or each.startswith("the first ")]
    return bool(operators) and not whole


def _verification(generation: Generation) -> Verification:
    return Verification(
        generation.storage,
        generation.files,
        stateful=keeps_state(generation),
        keyed=keeps_keyed_state(generation),
    )


def all_faults(generation: Generation) -> list[CheckpointFault]:
    """Return faults in all files of the checkpoint and of a file sink's log; reads them all."""
    verified = _verification(generation).everything()
    found = [*verified, *_known_and_gone(generation), *_of_another_query(generation)]
    found.sort(key=lambda fault: not fault.needed)
    if (log := sink_log(generation)) is not None:
        found += verify_file_log(generation.storage, log, "sink")
    return found


def restart_faults(generation: Generation) -> list[CheckpointFault]:
    """Return faults in the files that the next run reads, as far as a quick check shows."""
    # Damaged files come first: an interrupted command explains what is missing.
    gone = [fault for fault in _known_and_gone(generation) if not _runs_again(generation, fault)]
    return [*_verification(generation).restart(), *gone, *_of_another_query(generation)]


def _runs_again(generation: Generation, fault: CheckpointFault) -> bool:
    """Whether Spark executes the batch of a lost commit again, and the sink takes its rows once.

    It does for the last planned batch. Beside a checksum that was left, it cannot write the entry again.
    """
    last = generation.files.last_offset_batch()
    if (fault.part, fault.kind, fault.number) != ("commits", "missing", last):
        return False
    return not any(map(generation.storage.exists, (fault.path, checksum_path(fault.path))))


def shown_batches(generation: Generation, *, settled: bool = False) -> dict[StagedTable, int]:
    """Return the last batch with rows in the output, and in the quarantine; -1 for none.

    Args:
        settled: close changes of an older lease holder first; only for the current holder.

    Raises:
        SourceError: the sink cannot be reached.
    """
    output = _shown_in(generation, "output") if settled else shown_in(generation, "output")
    return {"output": output, "quarantine": shown_in(generation, "quarantine")}


def shown_in(generation: Generation, table: StagedTable, *, at_least: int = -1) -> int:
    """Return the last batch with rows in one table; -1 for none.

    A sink that cannot be asked is assumed to contain every recorded batch.

    Args:
        at_least: what is expected: a ledger that shows less is asked again once no transaction is open.

    Raises:
        SourceError: the sink cannot be reached.
    """
    if table == "output" and generation.pipeline.sink.transactional:
        return _look_into_ledger(generation, at_least)
    return _shown_in(generation, table)


def _look_into_ledger(generation: Generation, at_least: int) -> int:
    """Return the topic's last batch from its ledger: asking its Target would fence an active run."""
    from confluent_kafka import KafkaException

    broker = generation.project.brokers[generation.pipeline.sink.broker]
    app_id = transaction_id(generation.pipeline.name_in_sink, generation.number, "output")
    ledger = KafkaLedger(broker, generation.pipeline.name_in_sink)
    try:
        batch = ledger.marker(app_id).batch
        return batch if batch >= at_least else ledger.last_marker(app_id, _SETTLED_WITHIN).batch
    except KafkaException as cause:
        raise SourceError(
            "sink.broker",
            f"the ledger of the sink cannot be read: {cause.args[0].str()}",
            where=broker.bootstrap_servers,
            do="check the broker, then try again",
        ) from None


def _shown_in(generation: Generation, table: StagedTable) -> int:
    if table == "output" and (log := sink_log(generation)) is not None:
        return max(FileLog(generation.storage, log, {}).names().values(), default=-1)
    uri = quarantine_uri if table == "quarantine" else output_uri
    is_delta = table == "quarantine" or generation.pipeline.sink.format == "delta"
    if is_delta and not DeltaTableFiles(uri(generation.project, generation.pipeline)).exists():
        return -1
    target = target_of(generation.project, generation.pipeline, table)
    if target is None:
        return max((batch.batch_id for batch in generation.batches()), default=-1)
    return target.begun_batch(transaction_id(generation.pipeline.name_in_sink, generation.number, table))


def _known_and_gone(generation: Generation) -> list[CheckpointFault]:
    """Return what the next run needs and the metastore knows, but the checkpoint lacks: the whole folder, the
    commit of its last batch, or the offsets of the batch before that."""
    planned, committed = generation.files.last_offset_batch(), generation.files.last_commit_batch()
    if planned is None and committed is None:
        what = "the checkpoint is missing or empty, but its batches are recorded"
        gone = CheckpointFault("metadata", "missing", generation.path, what, True)
        return [gone] if generation.checkpoint and generation.batches() else []
    return [*_lost_commit(generation, planned, committed), *_lost_offsets(generation, planned, committed)]


def _of_another_query(generation: Generation) -> Iterator[CheckpointFault]:
    """Yield a fault if the checkpoint's query id is not the one that the metastore has noted."""
    known = None if generation.checkpoint is None else generation.checkpoint.query_id
    try:
        found = generation.files.query_id()
    except RefusedError:
        return  # found as a damaged file
    if known is not None and found not in (None, known):
        what = f"it has query id {found}, but {known} is recorded: it is from another checkpoint"
        yield CheckpointFault("metadata", "foreign", f"{generation.path}/metadata", what, True)


def _lost_commit(
    generation: Generation, planned: int | None, committed: int | None
) -> Iterator[CheckpointFault]:
    if planned is None or (committed is not None and committed >= planned):
        return
    # If a batch is planned but not committed, the one before must be committed.
    for batch in (planned - 1, planned):
        noted = generation.batch(batch) if batch != committed else None
        if noted is not None and noted.status != "staged":
            what = (
                f"batch {batch} was committed (the metastore has it as {noted.status}), but its entry is"
                " missing"
            )
            path = f"{generation.path}/commits/{batch}"
            yield CheckpointFault("commits", "missing", path, what, True, batch)


def _lost_offsets(
    generation: Generation, planned: int | None, committed: int | None
) -> Iterator[CheckpointFault]:
    # The offsets of the committed batch are found missing even without the metastore.
    before = (planned if planned is not None else 0) - 1
    kept = generation.files.offset_batches()
    if kept and before not in kept and before != committed and generation.batch(before) is not None:
        what = f"the offsets of batch {before} are missing, although the metastore has recorded them"
        path = f"{generation.path}/offsets/{before}"
        yield CheckpointFault("offsets", "missing", path, what, True, before)
