"""What is wrong with a generation's files, and which batches its sink shows."""

from __future__ import annotations

from drawdown.changes.protocol import transaction_id
from drawdown.checkpoint import CheckpointFault, FileLog, Verification, verify_file_log
from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import SourceError
from drawdown.metastore.records import StagedTable
from drawdown.sinks.kafka.ledger import KafkaLedger
from drawdown.sinks.locations import output_uri, quarantine_uri
from drawdown.sinks.targets import target_of
from drawdown.workspace import Generation

_FILE_SINKS = frozenset({"parquet", "orc", "json", "csv", "text"})
_SINK_LOG = "_spark_metadata"


def sink_log(generation: Generation) -> str | None:
    """The folder of a file sink's log, relative to the storage root; None for other sinks."""
    if generation.pipeline.sink.format not in _FILE_SINKS:
        return None
    return f"{generation.storage.relative(output_uri(generation.project, generation.pipeline))}/{_SINK_LOG}"


def _verification(generation: Generation) -> Verification:
    operators: list[str] = generation.fingerprint.get("state.operators") or []
    # In the words of query/state/operators.py.
    whole = [each for each in operators if each.endswith(" by nothing") or each.startswith("the first ")]
    return Verification(
        generation.storage, generation.path, stateful=bool(operators), keyed=bool(operators) and not whole
    )


def all_faults(generation: Generation) -> list[CheckpointFault]:
    """What is wrong with any file of the checkpoint, or of a file sink's log; reads them all."""
    found = [*_known_and_gone(generation), *_verification(generation).everything()]
    if (log := sink_log(generation)) is not None:
        found += verify_file_log(generation.storage, log, "sink")
    return found


def restart_faults(generation: Generation) -> list[CheckpointFault]:
    """What is wrong with the files that the next run reads, as far as a quick look tells."""
    return _verification(generation).restart()


def shown_batches(generation: Generation, *, settled: bool = False) -> dict[StagedTable, int]:
    """The last batch that the output and the quarantine hold anything of, -1 for none.

    A sink that cannot be asked is taken to hold every batch that was noted.

    Args:
        settled: what an older holder of the lease has under way is ended first; only for who holds it.

    Raises:
        SourceError: the sink cannot be reached.
    """
    return {"output": _shown_output(generation, settled), "quarantine": _shown_in(generation, "quarantine")}


def _shown_output(generation: Generation, settled: bool) -> int:
    if generation.pipeline.sink.transactional and not settled:
        return _look_into_ledger(generation)
    if (log := sink_log(generation)) is not None:
        return max(FileLog(generation.storage, log, {}).names().values(), default=-1)
    if target_of(generation.project, generation.pipeline, "output") is not None:
        return _shown_in(generation, "output")
    noted = generation.batches()
    return max((batch.batch_id for batch in noted), default=-1)


def _look_into_ledger(generation: Generation) -> int:
    """What a topic holds, as its ledger says: asking its Target would fence a run that is under way."""
    from confluent_kafka import KafkaException

    broker = generation.project.brokers[generation.pipeline.sink.broker]
    try:
        app_id = transaction_id(generation.pipeline.name_in_sink, generation.number, "output")
        return KafkaLedger(broker, generation.pipeline.name_in_sink).marker(app_id).batch
    except KafkaException as cause:
        raise SourceError(
            "sink.broker",
            f"the ledger of the sink cannot be read: {cause.args[0].str()}",
            where=broker.bootstrap_servers,
            do="look at the broker, then try again",
        ) from None


def _shown_in(generation: Generation, table: StagedTable) -> int:
    uri = quarantine_uri if table == "quarantine" else output_uri
    is_delta = table == "quarantine" or generation.pipeline.sink.format == "delta"
    if is_delta and not DeltaTableFiles(uri(generation.project, generation.pipeline)).exists():
        return -1
    target = target_of(generation.project, generation.pipeline, table)
    assert target is not None
    return target.begun_batch(transaction_id(generation.pipeline.name_in_sink, generation.number, table))


def _known_and_gone(generation: Generation) -> list[CheckpointFault]:
    """A checkpoint, or the commit of its last batch, that the metastore knows and that is not there."""
    planned, committed = generation.files.last_offset_batch(), generation.files.last_commit_batch()
    if planned is None:
        what = "the checkpoint is gone, and its batches are noted"
        gone = CheckpointFault("metadata", "missing", f"{generation.path}/metadata", what, True)
        return [gone] if generation.checkpoint and generation.batches() else []
    if committed is not None and committed >= planned:
        return []
    batch = generation.batch(planned)
    if batch is None or batch.status == "staged":
        return []
    what = f"batch {planned} was committed (the metastore has it as {batch.status}), its entry is gone"
    return [
        CheckpointFault("commits", "missing", f"{generation.path}/commits/{planned}", what, True, planned)
    ]
