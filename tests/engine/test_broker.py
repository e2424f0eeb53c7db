"""The local broker, for real: records survive a restart, nothing survives a stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from drawdown.errors import MachineError
from drawdown.testing.servers.kafka import KafkaServer

STATE_DIR = Path(__file__).parents[2] / ".drawdown"
TOPIC = "weather"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaServer]:
    with KafkaServer(tmp_path / "kafka", state_dir=STATE_DIR) as running:
        yield running


def test_a_produced_record_is_consumed(broker: KafkaServer) -> None:
    _produce(broker, b"clear sky")
    assert _consume(broker, 1) == [b"clear sky"]


@pytest.mark.full
def test_a_restart_keeps_the_records(broker: KafkaServer) -> None:
    _produce(broker, b"rain")
    broker.stop()
    broker.start()
    _produce(broker, b"wind")
    assert _consume(broker, 2) == [b"rain", b"wind"]


@pytest.mark.full
def test_a_stopped_broker_leaves_no_process_and_no_address(broker: KafkaServer) -> None:
    assert _processes(broker.folder)
    broker.stop()
    assert not _processes(broker.folder)
    assert broker.running_at() is None


@pytest.mark.full
def test_a_second_start_in_the_same_folder_is_refused_and_harms_nothing(broker: KafkaServer) -> None:
    with pytest.raises(MachineError) as caught:
        KafkaServer(broker.folder, state_dir=STATE_DIR).start()
    assert caught.value.id == "machine.running"
    _produce(broker, b"still here")
    assert _consume(broker, 1) == [b"still here"]


def test_a_taken_port_is_named(broker: KafkaServer, tmp_path: Path) -> None:
    port = int(broker.bootstrap_servers.split(":")[1])
    with pytest.raises(MachineError, match=str(port)) as caught:
        KafkaServer(tmp_path / "other", port, state_dir=STATE_DIR).start()
    assert caught.value.id == "broker.port-taken"


def test_missing_jars_name_the_command_that_fetches_them(tmp_path: Path) -> None:
    with pytest.raises(MachineError) as caught:
        KafkaServer(tmp_path / "kafka").start()
    assert (caught.value.id, caught.value.do) == ("jars.missing", "make setup")


def test_a_data_folder_that_cannot_be_formatted_is_reported(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "data").write_text("a file, not a folder")
    with pytest.raises(MachineError) as caught:
        KafkaServer(tmp_path / "kafka", state_dir=STATE_DIR).start()
    assert caught.value.id == "broker.format"


def test_the_broker_dies_with_a_killed_owner(tmp_path: Path) -> None:
    folder = tmp_path / "kafka"
    program = (
        "import time; from pathlib import Path; from drawdown.testing.servers.kafka import KafkaServer; "
        f"KafkaServer(Path({str(folder)!r}), state_dir=Path({str(STATE_DIR)!r})).start(); "
        "print('up', flush=True); time.sleep(600)"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=_environment())
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"up\n"
    assert _processes(folder)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    deadline = time.monotonic() + 15
    while _processes(folder):
        assert time.monotonic() < deadline, "the broker outlived its owner"
        time.sleep(0.1)


def _produce(broker: KafkaServer, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(TOPIC, value)
    assert producer.flush(10) == 0


def _consume(broker: KafkaServer, count: int) -> list[bytes]:
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "test",
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(settings)
    consumer.subscribe([TOPIC])
    try:
        return [message.value() for message in consumer.consume(count, timeout=60)]
    finally:
        consumer.close()


def _processes(folder: Path) -> list[int]:
    """Every process whose command line names the folder, except this one."""
    found = []
    for command in (process / "cmdline" for process in Path("/proc").glob("[0-9]*")):
        try:
            if str(folder).encode() in command.read_bytes() and b"kafka.Kafka" in command.read_bytes():
                found.append(int(command.parent.name))
        except OSError:
            continue
    return found


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "include")}
