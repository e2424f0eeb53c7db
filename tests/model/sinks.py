"""Where the rows of a world go: what its spec says of the sink, and what readers see, read without Spark."""

from __future__ import annotations

import json
import re
import shutil
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from drawdown.testing.servers.kafka import KafkaServer
from drawdown.testing.servers.postgres import PostgresServer
from drawdown.values.kafka_names import ledger_topic
from tests.model import looks
from tests.model.actions import Moment
from tests.model.places import ORDER, comes_after
from tests.model.project import OUT
from tests.support.database import TestDatabase
from tests.support.topics import Topic, delete_topic, records

Rows = Counter[tuple[int, int]]
PutBack = Callable[[], None]


class DeltaRows:
    """A Delta table; the parent of all kinds, which says what a kind can do.

    Attributes:
        name: of the kind.
        keys: of the spec's `sink:`, all but `publish:`.
        project: lines of project.yaml.
        broker: address of the broker.
        directs: what `publish:` may say, `direct` or not.
        replays: intervals can be replaced.
        goes_back: rebuilds, rewinds and readers downstream are for it.
        checked: the column that holds the marker of rows that no audit passes.
        transform: where it is not the usual one.
        shown_at: the step that makes a batch visible with direct publishing.
    """

    name = "delta"
    keys = "format: delta, path: tables/out, schema: out.ddl, time_column: at"
    project = ""
    broker = "localhost:1"
    directs: tuple[bool, ...] = (False, True)
    replays = True
    goes_back = True
    checked = "k"
    transform = ""
    shown_at = "batch.show"

    def rows(self, storage: Path) -> Rows:
        return looks.rows(storage / OUT)

    def fixes(self, moment: Moment, at_once: bool) -> bool:
        """Whether a batch whose run died there may be in the sink: its rows stay those that they were."""
        return at_once and comes_after(moment, "batch.show")

    def backup(self, storage: Path) -> PutBack:
        """What puts the table back as it is now."""
        return backup_of(storage / OUT)

    def add_column(self, column: str) -> None:
        """Where the table does not get it by itself: what its owner does."""

    def empty(self, storage: Path) -> None:
        """As somebody does who starts over: no row is left, and the table stays."""
        shutil.rmtree(storage / OUT, ignore_errors=True)


class PostgresRows(DeltaRows):
    name = "postgres"
    keys = "format: postgres, table: public.out, schema: out.ddl, time_column: at"
    goes_back = False

    def __init__(self, server: PostgresServer) -> None:
        self.database = TestDatabase(server)
        self.project = self.database.project_lines

    def rows(self, storage: Path) -> Rows:
        if self.database.execute("SELECT to_regclass('public.out')") == [(None,)]:
            return Counter()
        return Counter(
            (int(str(row[0])), int(str(row[1])))
            for row in self.database.execute("SELECT id, v FROM public.out")
        )

    def backup(self, storage: Path) -> PutBack:
        """Table and ledger, as a dump of the schema would have them."""
        names = ("out", "drawdown_ledger")
        for name in names:
            self.database.execute(f"DROP TABLE IF EXISTS old_{name}")
            self.database.execute(f"CREATE TABLE old_{name} AS TABLE public.{name}")
        kept = {name: f"kept_{uuid.uuid4().hex}" for name in names}
        for name in names:
            self.database.execute(f"ALTER TABLE old_{name} RENAME TO {kept[name]}")

        def put_back() -> None:
            for name in names:
                self.database.execute(f"TRUNCATE public.{name}")
                self.database.execute(f"INSERT INTO public.{name} TABLE {kept[name]}")

        return put_back

    def add_column(self, column: str) -> None:
        self.database.execute(f"ALTER TABLE IF EXISTS public.out ADD COLUMN {column}")

    def empty(self, storage: Path) -> None:
        self.database.execute("DELETE FROM public.out")


class TopicRows(DeltaRows):
    name = "kafka"
    replays = goes_back = False
    checked = "value"
    transform = "SELECT string(id) AS key, concat_ws(' ', id, {version}, k) AS value FROM events"

    def __init__(self, server: KafkaServer) -> None:
        self.server, self.topic = server, f"out-{uuid.uuid4().hex}"
        # Every world has a pipeline of this name, and the ledger on the broker is the pipeline's.
        delete_topic(server, ledger_topic("out"))
        Topic(server, self.topic)
        self.keys, self.broker = f"format: kafka, topic: {self.topic}", server.bootstrap_servers

    def fixes(self, moment: Moment, at_once: bool) -> bool:
        # Readers may see the first file of a batch that is recorded.
        return comes_after(moment, "batch.note")

    def rows(self, storage: Path) -> Rows:
        found = [value.split(" ") for _, _, value, _ in records(self.server, self.topic)]
        return Counter((int(each[0]), int(each[1])) for each in found)


class ParquetRows(DeltaRows):
    name = "parquet"
    keys = "format: parquet, path: tables/out, schema: out.ddl"
    directs = (True,)
    shown_at = "batch.stage"
    replays = goes_back = False

    def fixes(self, moment: Moment, at_once: bool) -> bool:
        # It is noted before Spark's own sink writes, which nobody can ask in between.
        return ORDER.index(moment.step) >= ORDER.index("batch.stage")

    def rows(self, storage: Path) -> Rows:
        """By the log of Spark's file sink."""
        log = storage / OUT / "_spark_metadata"
        commits = {int(path.name.split(".")[0]): path for path in sorted(log.glob("[0-9]*"))}
        compact = max((number for number, path in commits.items() if path.suffix == ".compact"), default=-1)
        files = [
            json.loads(line)["path"]
            for number, path in commits.items()
            if number >= compact
            for line in path.read_text().splitlines()[1:]
        ]
        found: Rows = Counter()
        for file in files:
            table = pq.read_table(storage / OUT / Path(file).name, columns=["id", "v"])
            found.update((row["id"], row["v"]) for row in table.to_pylist())
        return found


@dataclass
class Servers:
    """Gives a sink of a kind; servers start when a world first asks for them."""

    postgres: Callable[[], PostgresServer]
    broker: Callable[[], KafkaServer]

    def sink(self, kind: str) -> DeltaRows:
        if kind == "postgres":
            return PostgresRows(self.postgres())
        if kind == "kafka":
            return TopicRows(self.broker())
        return ParquetRows() if kind == "parquet" else DeltaRows()


def backup_of(folder: Path) -> PutBack:
    kept = folder.parent.parent.parent / f"kept-{uuid.uuid4().hex}"
    shutil.copytree(folder, kept)

    def put_back() -> None:
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)

    return put_back


def id_of(payload: str) -> int:
    found = re.search(r'"id": ?(\d+)', payload)
    assert found is not None, payload
    return int(found[1])
