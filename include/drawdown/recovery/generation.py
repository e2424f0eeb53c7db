"""The generation of a checkpoint that a recovery is about: its files, what is noted of it, its sink."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from drawdown.checkpoint import CheckpointFiles, Fault, FileLog, Verification, verify_file_log
from drawdown.errors import SourceError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Checkpoint, StagedTable
from drawdown.publishing.delta_table import DeltaTableFiles
from drawdown.publishing.kafka_ledger import Ledger
from drawdown.publishing.target import transaction_id
from drawdown.publishing.targets import output_uri, quarantine_uri, target_of
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage

_FILE_SINKS = frozenset({"parquet", "orc", "json", "csv", "text"})
_SINK_LOG = "_spark_metadata"


@dataclass(frozen=True)
class Generation:
    """The active generation of a pipeline.

    Attributes:
        checkpoint: what the metastore has noted of it; None when it knows nothing.
    """

    project: Project
    pipeline: Pipeline
    metastore: Metastore
    checkpoint: Checkpoint | None

    @classmethod
    def of(cls, project: Project, pipeline: Pipeline, metastore: Metastore) -> Generation:
        """The one in use."""
        return cls(project, pipeline, metastore, metastore.active_checkpoint(pipeline.name))

    @cached_property
    def storage(self) -> Storage:
        return Storage(self.project.storage_root)

    @cached_property
    def number(self) -> int:
        if self.checkpoint is None:
            return self.metastore.next_generation(self.pipeline.name)
        return self.checkpoint.generation

    @property
    def folder(self) -> str:
        """Of all that Drawdown keeps for the pipeline, relative to the storage root."""
        return f"_drawdown/{self.pipeline.name}"

    @property
    def path(self) -> str:
        """Of the checkpoint, relative to the storage root."""
        return f"{self.folder}/checkpoint-{self.number}"

    @property
    def files(self) -> CheckpointFiles:
        return CheckpointFiles(self.storage, self.path)

    @property
    def sink_log(self) -> str | None:
        """The folder of a file sink's log, relative to the storage root; None for other sinks."""
        if self.pipeline.sink.format not in _FILE_SINKS:
            return None
        return f"{self.storage.relative(output_uri(self.project, self.pipeline))}/{_SINK_LOG}"

    @property
    def batches_noted(self) -> bool:
        """Whether the metastore knows any batch of it."""
        return bool(self.metastore.batches(self.pipeline.name, self.number))

    def verification(self) -> Verification:
        noted = self.checkpoint.fingerprint.get("state.operators") if self.checkpoint else None
        operators: list[str] = noted or []
        # In the words of engine/operators.py.
        whole = [each for each in operators if each.endswith(" by nothing") or each.startswith("the first ")]
        return Verification(
            self.storage, self.path, stateful=bool(operators), keyed=bool(operators) and not whole
        )

    def faults(self) -> list[Fault]:
        """What is wrong with any file of the checkpoint, or of a file sink's log; reads them all."""
        found = [*self._known_and_gone(), *self.verification().everything()]
        if self.sink_log is not None:
            found += verify_file_log(self.storage, self.sink_log, "sink")
        return found

    def restart_faults(self) -> list[Fault]:
        """What is wrong with the files that the next run reads, as far as a quick look tells."""
        return self.verification().restart()

    def shown(self, *, settled: bool = False) -> dict[StagedTable, int]:
        """The last batch that the output and the quarantine hold anything of, -1 for none.

        A sink that cannot be asked is taken to hold every batch that was noted.

        Args:
            settled: what an older holder of the lease has under way is ended first; only for who holds it.

        Raises:
            SourceError: the sink cannot be reached.
        """
        return {"output": self._shown_output(settled), "quarantine": self._shown_in("quarantine")}

    def _shown_output(self, settled: bool) -> int:
        if self.pipeline.sink.transactional and not settled:
            return self._look_into_ledger()
        if self.sink_log is not None:
            return max(FileLog(self.storage, self.sink_log, {}).names().values(), default=-1)
        if target_of(self.project, self.pipeline, "output") is not None:
            return self._shown_in("output")
        noted = self.metastore.batches(self.pipeline.name, self.number)
        return max((batch.batch_id for batch in noted), default=-1)

    def _look_into_ledger(self) -> int:
        """What a topic holds, told by its ledger: asking its Target would fence a run that is under way."""
        from confluent_kafka import KafkaException

        broker = self.project.brokers[self.pipeline.sink.broker]
        try:
            app_id = transaction_id(self.pipeline.name, self.number, "output")
            return Ledger(broker, self.pipeline.name).marker(app_id).batch
        except KafkaException as cause:
            raise SourceError(
                "sink.broker",
                f"the ledger of the sink cannot be read: {cause.args[0].str()}",
                where=broker.bootstrap_servers,
                do="look at the broker, then try again",
            ) from None

    def _shown_in(self, table: StagedTable) -> int:
        uri = quarantine_uri if table == "quarantine" else output_uri
        is_delta = table == "quarantine" or self.pipeline.sink.format == "delta"
        if is_delta and not DeltaTableFiles(uri(self.project, self.pipeline)).exists():
            return -1
        target = target_of(self.project, self.pipeline, table)
        assert target is not None
        return target.begun_batch(transaction_id(self.pipeline.name, self.number, table))

    def _known_and_gone(self) -> list[Fault]:
        """A checkpoint, or the commit of its last batch, that the metastore knows and that is not there."""
        planned, committed = self.files.last_offset_batch(), self.files.last_commit_batch()
        if planned is None:
            what = "the checkpoint is gone, and its batches are noted"
            gone = Fault("metadata", "missing", f"{self.path}/metadata", what, True)
            return [gone] if self.checkpoint and self.batches_noted else []
        if committed is not None and committed >= planned:
            return []
        batch = self.metastore.batch(self.pipeline.name, self.number, planned)
        if batch is None or batch.status == "staged":
            return []
        what = f"batch {planned} was committed (the metastore has it as {batch.status}), its entry is gone"
        return [Fault("commits", "missing", f"{self.path}/commits/{planned}", what, True, planned)]
