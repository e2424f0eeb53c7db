"""Deliver the files of a wave to their sources: as they are, as rows of a table, or as Kafka messages."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from drawdown.errors import SourceError, SpecError
from drawdown.spec import Project, iter_pipelines
from drawdown.storage import Storage
from drawdown.testing.cases.case import Case
from drawdown.testing.cases.case_rows import expected_frame
from drawdown.testing.cases.placing import place
from drawdown.values.kafka_names import ledger_topic
from drawdown.values.paths import fixed_part

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_AS_THEY_ARE = frozenset({"csv", "json", "xml", "text"})
_ROWS = (".csv", ".jsonl")
_PATIENCE_SECONDS = 20
_EXISTS = "TOPIC_ALREADY_EXISTS"
# Spark reads files in the order of their times, and a file system's clock ticks every few milliseconds.
_TICK_SECONDS = 0.02
_PAUSE_SECONDS = 0.2


@dataclass
class Arrivals:
    """Delivers to the sources of one case.

    Attributes:
        project: with the case's own storage root and brokers.
    """

    session: SparkSession
    project: Project
    case: Case

    def _storage(self, name: str) -> Storage:
        """Return the storage that a source reads."""
        return Storage.of_source(self.project, self.case.pipeline.sources[name])

    def prepare(self) -> None:
        """Create what must exist before the first run: folders, empty tables, topics, static files."""
        for name, source in self.case.pipeline.sources.items():
            if source.format == "kafka":
                self._create_topic(name)
            elif source.format in ("delta", "table"):
                self._append([], name, "delta")
            elif not source.static:
                self._storage(name).makedirs(fixed_part(source.path or "") or ".")
        sink = self.case.pipeline.sink
        if sink.topic is not None:
            # Cases share the broker: outputs.py only reads records of this case.
            broker = self.project.brokers[sink.broker].bootstrap_servers
            self._make_topic(broker, sink.topic, 1, may_exist=True)
        if sink.transactional:
            # Records of an earlier case of this pipeline must not count.
            broker = self.project.brokers[sink.broker].bootstrap_servers
            self._make_topic(broker, ledger_topic(self.case.pipeline.name), 1, may_exist=False)
        self.deliver(self.case.spec.static, 0)

    def deliver(self, arrivals: Mapping[str, list[str]], wave: int) -> None:
        """Deliver the files of a wave, one after the other.

        Raises:
            SpecError: a file does not fit its source. SourceError: the broker did not take a message.
        """
        for name in arrivals:
            source = self.case.pipeline.sources[name]
            for number, file in enumerate(self.case.files(arrivals, name)):
                if source.format == "kafka":
                    self._produce(name, file)
                elif source.format in _AS_THEY_ARE or file.suffix not in _ROWS:
                    arrived = f"{wave:04d}-{number:04d}-{file.name}"
                    self._storage(name).write_atomic(place(source, arrived), file.read_bytes())
                    time.sleep(_TICK_SECONDS)
                else:
                    self._append([file], name, "delta" if source.format == "table" else source.format)

    def _append(self, files: list[Path], name: str, kind: str) -> None:
        """Append rows of .csv or .jsonl files to a table or a folder of data files; none: an empty table."""
        from pyspark.sql import functions as F

        schema = self._schema(name)
        path = self._storage(name).path(str(Path(place(self.case.pipeline.sources[name], "x")).parent))
        frame = self.session.createDataFrame([], schema)
        for file in files:
            given = expected_frame(self.session, file, schema)
            absent = {f.name: F.lit(None).cast(f.dataType) for f in schema if f.name not in given.columns}
            frame = given.withColumns(absent).select(*[F.col(f"`{n}`") for n in schema.fieldNames()])
        frame.coalesce(1).write.format(kind).mode("append").save(path)

    def _schema(self, name: str) -> StructType:
        from drawdown.spark.declared_schema import parse_ddl

        source = self.case.pipeline.sources[name]
        ddl = self.case.schema_ddl(name) or source.schema_ddl or self._schema_of_writer(source.path)
        if ddl is None:
            raise SpecError(
                "test.no-schema",
                f"no pipeline writes {source.path}, so the columns of source {name!r} are not known",
                where=str(self.case.folder / "case.yaml"),
                do=f"add `schemas: {{{name}: {name}.ddl}}` and that file beside it",
            )
        return parse_ddl(ddl, f"the schema of source {name}", self.case.folder / "case.yaml")

    def _schema_of_writer(self, path: str | None) -> str | None:
        for other in iter_pipelines(self.project):
            if path is not None and not isinstance(other, SpecError) and other.sink.path == path:
                return other.sink.schema_ddl
        return None

    def _topic(self, name: str) -> tuple[str, int]:
        """Return the first topic that a source reads, and how many partitions it must have."""
        options = {key.lower(): str(value) for key, value in self.case.pipeline.sources[name].options.items()}
        if "subscribe" in options:
            return options["subscribe"].split(",")[0].strip(), 1
        if "assign" in options:
            topic, numbers = next(iter(json.loads(options["assign"]).items()))
            return str(topic), max(int(number) for number in numbers) + 1
        raise SpecError(
            "test.topic",
            f"source {name!r} reads topics by a pattern; a test cannot tell which one to fill",
            where=f"include/pipelines/{self.case.pipeline.name}/pipeline.yaml",
            do="use `subscribe` to test this pipeline",
        )

    def _bootstrap(self, name: str) -> str:
        return self.project.brokers[self.case.pipeline.sources[name].broker].bootstrap_servers

    def _create_topic(self, name: str) -> None:
        topic, partitions = self._topic(name)
        self._make_topic(self._bootstrap(name), topic, partitions, may_exist=False)

    def _make_topic(self, broker: str, topic: str, partitions: int, *, may_exist: bool) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        admin = AdminClient({"bootstrap.servers": broker, "log_level": 0})
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(_PATIENCE_SECONDS)
                return
            except (KafkaException, TimeoutError) as cause:
                exists = isinstance(cause, KafkaException) and cause.args[0].name() == _EXISTS
                if exists and may_exist:
                    return
                if not exists or time.monotonic() > until:
                    raise _refused(f"the topic {topic} could not be made: {cause}", broker) from None
            # An earlier case used a topic of this name; its records do not belong to this case.
            self._remove_topic(admin, topic)

    def _remove_topic(self, admin: AdminClient, topic: str) -> None:
        from confluent_kafka import KafkaException

        with suppress(KafkaException, TimeoutError):  # the next try to create it reports what is wrong
            admin.delete_topics([topic])[topic].result(_PATIENCE_SECONDS)
        time.sleep(_PAUSE_SECONDS)

    def _produce(self, name: str, file: Path) -> None:
        """Send one message for each line that is not empty."""
        from confluent_kafka import Producer

        lost: list[str] = []
        producer = Producer({"bootstrap.servers": self._bootstrap(name), "log_level": 0})
        for line in file.read_bytes().splitlines():
            if line.strip():
                producer.produce(
                    self._topic(name)[0],
                    value=line,
                    on_delivery=lambda error, _: lost.append(str(error)) if error else None,
                )
        unsent = producer.flush(_PATIENCE_SECONDS)
        if lost or unsent:
            what = lost[0] if lost else f"{unsent} messages were not taken"
            raise _refused(what, self._bootstrap(name))


def _refused(what: str, broker: str) -> SourceError:
    return SourceError("test.broker", what, where=broker, do="run it again; `drawdown doctor` shows details")
