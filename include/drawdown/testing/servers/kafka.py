"""A local Kafka broker (KRaft, one node) for development, the demo and tests.

``python -m drawdown.testing.servers.kafka start|stop|status`` keeps one in the project's ``.drawdown/kafka``.
Needs the broker jars of ``jars.lock`` and Java, no Kafka installation.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from types import TracebackType

from drawdown.errors import DrawdownError, MachineError
from drawdown.jvm.installation import how_to_set_up
from drawdown.jvm.jars import BROKER, jar_paths
from drawdown.jvm.java import require_java
from drawdown.jvm.spark_home import spark_home
from drawdown.processes.background import Background, last_lines
from drawdown.processes.ports import LOOPBACK, free_ports, is_free

START_TIMEOUT = 60.0
# For a short life on few cores: a small heap, a collector without threads, the compiler that starts fast.
JVM_OPTIONS = ("-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
# One node: the internal topics cannot have the three replicas they ask for.
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
# A test's consumer is alone in its group: there is no other one to wait for.
group.initial.rebalance.delay.ms=0
num.partitions=1
num.network.threads=2
num.io.threads=2
log.cleaner.dedupe.buffer.size=16777216
log.cleaner.threads=1
"""

_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p %m (%c{1})%n
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
"""


class KafkaServer:
    """One broker whose data live in ``folder``; as a context manager it is started and stopped.

    A second start in the same folder finds the same topics and records.

    Args:
        folder: holds data, settings, log and pid file; made if missing.
        port: the broker's port; 0: a free one. The controller always gets a free one.
        state_dir: the ``.drawdown`` that holds ``broker-jars/``; by default the folder's parent.
        host: the address that it listens on, and names to its clients.
    """

    def __init__(
        self, folder: Path, port: int = 0, *, state_dir: Path | None = None, host: str = LOOPBACK
    ) -> None:
        self.folder = folder.resolve()
        self.bootstrap_servers = ""
        self._host, self._port = host, port
        self._state_dir = state_dir or self.folder.parent
        self._background = Background("broker", self.folder)

    def __enter__(self) -> KafkaServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, *, detached: bool = False) -> None:
        """Start the broker and wait until it answers a metadata request; a failed start leaves none running.

        Unless ``detached``, the broker ends with this process, however that ends.
        Raises MachineError ``jars.missing``, ``java.*``, ``machine.running``, ``broker.port-taken``,
        ``broker.format``, ``machine.died`` or ``broker.timeout``.
        """
        java, jars = require_java(), [*jar_paths(self._state_dir, BROKER), _scala_library()]
        port, controller = self._ports()
        settings = self._write_settings(port, controller)
        run = [
            *(
                str(java.executable),
                *JVM_OPTIONS,
                f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",
            ),
            *("-cp", os.pathsep.join(map(str, jars))),
        ]
        self._format(run, settings)
        self._background.start([*run, "kafka.Kafka", str(settings)], os.environ, detached=detached)
        self.bootstrap_servers = f"{self._host}:{port}"
        try:
            self._wait_ready()
        except BaseException:
            self.stop()
            raise
        self._address_file.write_text(self.bootstrap_servers)

    def stop(self) -> None:
        """Stop the broker: SIGTERM, after 5 s SIGKILL; its data stay. Does nothing when it is not running."""
        self._background.stop()
        self._address_file.unlink(missing_ok=True)

    def running_at(self) -> str | None:
        """Return the address of the broker running in this folder, by whatever process; None without one."""
        if self._background.pid() is None or not self._address_file.exists():
            return None
        return self._address_file.read_text()

    @property
    def _address_file(self) -> Path:
        return self.folder / "bootstrap.servers"

    def _ports(self) -> tuple[int, int]:
        if self._port and not is_free(self._port):
            raise MachineError(
                "broker.port-taken",
                f"something listens on port {self._port} already",
                where=f"{LOOPBACK}:{self._port}",
                do="stop it, or let the broker take a free port",
            )
        free = free_ports(2)
        return self._port or free[0], free[1]

    def _write_settings(self, port: int, controller: int) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self.folder / "log4j2.properties").write_text(_LOGGING)
        settings = self.folder / "server.properties"
        values = {"host": self._host, "port": port, "controller": controller, "data": self.folder / "data"}
        settings.write_text(_PROPERTIES.format(**values))
        return settings

    def _format(self, run: list[str], settings: Path) -> None:
        """Give a new data folder a cluster id (``kafka-storage format``); a formatted one stays as it is."""
        if (self.folder / "data" / "meta.properties").exists():
            return
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # With "=": one id in 64 begins with a dash.
        arguments = ["format", f"--cluster-id={cluster_id}", "--config", str(settings), "--ignore-formatted"]
        command = [*run, "kafka.tools.StorageTool", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise MachineError(
                "broker.format",
                f"the data folder could not be formatted: {(done.stdout + done.stderr).strip()[-500:]}",
                where=str(self.folder / "data"),
                do="remove that folder if its records may go, and start again",
            )

    def _wait_ready(self) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        # Until the broker is up, the client would log "connection refused" for each try.
        client = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            self._background.require_alive()
            try:
                client.list_topics(timeout=1)
            except KafkaException as error:
                if time.monotonic() > deadline:
                    raise MachineError(
                        "broker.timeout",
                        f"no answer within {START_TIMEOUT:.0f} s: {last_lines(self._background.log)}",
                        where=str(self._background.log),
                        do="read that log",
                    ) from error
            else:
                return


def _scala_library() -> Path:
    """Return Spark's own copy: MavenUtils leaves this artifact out of everything it resolves."""
    folder = spark_home() / "jars"
    for jar in folder.glob("scala-library-2.13.*.jar"):
        return jar
    raise MachineError(
        "jars.missing", "pyspark carries no scala-library 2.13", where=str(folder), do=how_to_set_up()
    )


def main() -> int:
    """Run ``start [PORT]``, ``stop`` or ``status`` for the broker in the project's ``.drawdown/kafka``."""
    broker = KafkaServer(Path.cwd() / ".drawdown" / "kafka", int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    try:
        if sys.argv[1:2] == ["start"]:
            broker.start(detached=True)
        elif sys.argv[1:2] == ["stop"]:
            broker.stop()
    except DrawdownError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"broker: {broker.running_at() or 'not running'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
