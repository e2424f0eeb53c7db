"""Publishing to Kafka without Spark: who is fenced, what is skipped, and what a broker's refusal becomes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from drawdown.changes.protocol import Commit, Staged
from drawdown.errors import RefusedError, SourceError
from drawdown.metastore.records import StagedFile
from drawdown.sinks.kafka.ledger import KafkaLedger
from drawdown.sinks.kafka.publish import KafkaTarget
from drawdown.spec import Broker as BrokerSpec
from drawdown.spec.sink import Sink
from drawdown.storage import Storage
from drawdown.testing.servers.kafka import KafkaServer
from tests.support.login_broker import LoginBroker
from tests.support.registered import change
from tests.support.spark import ROOT
from tests.support.topics import Topic, records

PASSWORD = "only-the-broker-knows"
APP = "drawdown/PIPELINE/1/output"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoginBroker]:
    folder = tmp_path_factory.mktemp("kafka")
    with LoginBroker(folder, "drawdown", PASSWORD, state_dir=ROOT / ".drawdown") as running:
        yield running


class Publishing:
    """One pipeline's topic, ledger and staged files."""

    def __init__(self, broker: KafkaServer, folder: Path, pipeline: str) -> None:
        self._storage, self._folder = Storage(str(folder)), folder
        self._broker = BrokerSpec(bootstrap_servers=broker.bootstrap_servers)
        self._pipeline, self.app_id = pipeline, APP.replace("PIPELINE", pipeline)
        self.topic = Topic(broker, f"to-{pipeline}")
        self.ledger = KafkaLedger(self._broker, pipeline)
        self.ledger.create()

    def target(self, **sink: object) -> KafkaTarget:
        spec = Sink.model_validate({"format": "kafka", "topic": self.topic.name, **sink})
        return KafkaTarget(self._storage, self._broker, self._pipeline, spec)

    def staged(self, batch_id: int, **rows: list[str]) -> Staged:
        """One file of each name."""
        files = []
        for name, values in rows.items():
            path = self._folder / f"{name}.parquet"
            pq.write_table(pa.table({"value": pa.array(values, pa.string())}), path)
            files.append((batch_id, StagedFile("output", str(path), path.stat().st_size, len(values))))
        return Staged([batch_id], files)

    def commit(self, version: int, epoch: int = 1) -> Commit:
        return Commit(self.app_id, version, change(epoch))


def test_a_second_call_sends_nothing_and_a_smaller_epoch_is_refused(
    broker: KafkaServer, tmp_path: Path
) -> None:
    own = Publishing(broker, tmp_path, "epochs")
    staged = own.staged(0, a=["1", "1"], empty=[], b=["2"])
    for _ in range(2):
        own.target().make_visible(staged, own.commit(0, epoch=2))
    assert own.target().published_batch(own.app_id) == 0
    with pytest.raises(RefusedError) as refused:
        own.target().make_visible(own.staged(1, c=["3"]), own.commit(1, epoch=1))
    assert refused.value.id == "lease.lost"
    assert [value for _, _, value, _ in records(broker, own.topic.name)] == ["1", "1", "2"]


def test_what_a_rebuild_has_sent_fences_no_drain_after_the_swap(broker: KafkaServer, tmp_path: Path) -> None:
    own = Publishing(broker, tmp_path, "purposes")
    of_rebuild = Commit(own.app_id, 0, change(40, lease="tests#rebuild"))
    own.target().make_visible(own.staged(0, a=["1"]), of_rebuild)
    own.target().make_visible(own.staged(1, b=["2"]), own.commit(1, epoch=5))
    assert [value for _, _, value, _ in records(broker, own.topic.name)] == ["1", "2"]


def test_a_part_of_a_batch_goes_on_behind_its_marker_and_only_with_the_same_files(
    broker: KafkaServer, tmp_path: Path
) -> None:
    own = Publishing(broker, tmp_path, "parts")
    rows = [str(n) for n in range(60_000)]
    lost = 0

    def lost_after_one() -> None:
        nonlocal lost
        lost += 1
        if lost == 2:
            raise RefusedError("lease.lost", "another run has it")

    staged = own.staged(0, a=rows)
    with pytest.raises(RefusedError):
        own.target().make_visible(staged, Commit(own.app_id, 0, change(), still_ours=lost_after_one))
    after = own.target()
    assert (after.published_batch(own.app_id), after.begun_batch(own.app_id)) == (-1, 0)
    with pytest.raises(RefusedError) as refused:
        own.target().make_visible(own.staged(0, other=rows), own.commit(0))
    assert refused.value.id == "sink.other-files"
    own.target().make_visible(staged, own.commit(0))
    assert [value for _, _, value, _ in records(broker, own.topic.name)] == rows


def wait_until_decided(broker: KafkaServer, topic: str) -> None:
    """Until no transaction is open in partition 0: a commit returns before its end is in every partition."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    deadline = time.monotonic() + 30
    while True:
        ends = []
        for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
            asked = {TopicPartition(topic, 0): OffsetSpec.latest()}  # type: ignore[no-untyped-call]
            [answer] = admin.list_offsets(asked, isolation_level=level).values()
            ends.append(answer.result(30).offset)
        if ends[0] == ends[1]:
            return
        assert time.monotonic() < deadline


def test_every_transaction_holds_the_rows_that_its_marker_covers(
    broker: KafkaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Publishing(broker, tmp_path, "together")
    seen: list[tuple[int, int, bool]] = []

    class Looking(Producer):
        """Looks at what readers see behind each commit."""

        def commit_transaction(self, *timeout: float) -> None:
            super().commit_transaction(*timeout)
            wait_until_decided(broker, own.topic.name)
            visible = len(list(records(broker, own.topic.name)))
            marker = own.ledger.last_marker(own.app_id, 30)
            seen.append((visible, marker.rows, marker.whole))

    monkeypatch.setattr("confluent_kafka.Producer", Looking)
    rows = 60_000  # more than one transaction takes
    own.target().make_visible(own.staged(0, a=[str(n) for n in range(rows)]), own.commit(0))
    assert len(seen) > 1
    assert [visible for visible, _, _ in seen] == [covered for _, covered, _ in seen]
    assert seen[-1] == (rows, rows, True)


@pytest.mark.capability("SAFE-11")
def test_a_foreign_record_in_the_ledger_is_one_clear_error(broker: KafkaServer, tmp_path: Path) -> None:
    own = Publishing(broker, tmp_path, "damaged")
    writer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    writer.produce(own.ledger.topic, b"junk", own.app_id, 0)
    assert writer.flush(20) == 0
    with pytest.raises(RefusedError) as refused:
        own.target().make_visible(own.staged(0, a=["1"]), own.commit(0))
    assert refused.value.id == "sink.ledger-damaged"
    assert not list(records(broker, own.topic.name))


def test_what_another_generation_left_open_is_waited_for(broker: KafkaServer, tmp_path: Path) -> None:
    own = Publishing(broker, tmp_path, "open")
    settings = {"transactional.id": "drawdown/open/0/output", "transaction.timeout.ms": 2_000, "log_level": 0}
    dead = Producer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    dead.init_transactions(30)
    dead.begin_transaction()
    dead.produce("drawdown-ledger.open", b"{}", b"x", 0)
    dead.flush(30)
    own.target().make_visible(own.staged(0, a=["1"]), own.commit(0))
    assert [value for _, _, value, _ in records(broker, own.topic.name)] == ["1"]


def test_a_refusal_of_the_broker_is_one_clear_error_and_nothing_is_seen(
    broker: KafkaServer, tmp_path: Path
) -> None:
    own = Publishing(broker, tmp_path, "large")
    staged = own.staged(0, a=["small", "x" * 2_000_000])
    with pytest.raises(SourceError) as refused:
        own.target().make_visible(staged, own.commit(0))
    assert refused.value.id == "sink.broker"
    assert "size" in refused.value.what.lower()
    assert not list(records(broker, own.topic.name))
    own.target(options={"kafka.max.request.size": 3_000_000}).published_batch(own.app_id)


def test_a_ledger_that_is_gone_is_refused(broker: KafkaServer, tmp_path: Path) -> None:
    own = Publishing(broker, tmp_path, "gone")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_topics([own.ledger.topic])[own.ledger.topic].result(30)
    with pytest.raises(RefusedError) as refused:
        own.target().published_batch(own.app_id)
    assert refused.value.id == "sink.missing"


def test_a_login_goes_along_and_is_not_printed(
    broker: LoginBroker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    own = Publishing(broker, tmp_path, "login")
    with_login = BrokerSpec.model_validate(
        {
            "bootstrap_servers": broker.login_servers,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "username": "drawdown",
            "password": PASSWORD,
        }
    )
    sink = Sink.model_validate({"format": "kafka", "topic": own.topic.name})
    target = KafkaTarget(Storage(str(tmp_path)), with_login, "login", sink)
    target.make_visible(own.staged(0, a=["1"]), own.commit(0))
    assert [value for _, _, value, _ in records(broker, own.topic.name)] == ["1"]
    assert PASSWORD not in "".join(capfd.readouterr())
