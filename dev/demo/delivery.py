"""Delivers a day: csv files into the landing folder, messages onto Kafka, and a copy of both set aside.

The copy, taken before anything can read it, is all the oracle ever sees. Messages go before files, so a day
whose last file is there is there as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dev.demo.data import TOPIC, Day, reference
from drawdown.errors import SourceError

PARTITIONS = 3
_PATIENCE_SECONDS = 20


@dataclass(frozen=True)
class Delivery:
    """Where days go.

    Attributes:
        storage_root: the pipelines' storage; files go to landing/flights and reference/ inside it.
        bootstrap_servers: the broker's address.
        copy: a folder that keeps what was delivered, ``day<N>/flights/*.csv`` and ``day<N>/weather.jsonl``;
            None: nobody compares.
    """

    storage_root: Path
    bootstrap_servers: str
    copy: Path | None = None

    @property
    def landing(self) -> Path:
        return self.storage_root / "landing" / "flights"

    def prepare(self) -> None:
        """Create the landing folder and the topic, and deliver the reference tables; all may be there."""
        self.landing.mkdir(parents=True, exist_ok=True)
        for name, text in reference().items():
            self._keep(f"reference/{name}.csv", text)
            _move_in(self.storage_root / "reference" / name / f"{name}.csv", text)
        self._create_topic()

    def deliver(self, day: Day) -> None:
        """Deliver one day, files in their order.

        Raises:
            SourceError: the broker did not take the messages.
        """
        for file in day.files:
            self._keep(f"day{day.number}/flights/{file.name}", file.text)
        self._keep(f"day{day.number}/weather.jsonl", "".join(each.value + "\n" for each in day.messages))
        self._produce(day)
        for file in day.files:
            _move_in(self.landing / file.name, file.text)

    def has(self, day: Day) -> bool:
        """Whether it has been delivered, as a whole."""
        return (self.landing / day.files[-1].name).exists()

    def _keep(self, name: str, text: str) -> None:
        if self.copy is not None:
            _move_in(self.copy / name, text)

    def _create_topic(self) -> None:
        from confluent_kafka import KafkaError, KafkaException
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 2})
        created = admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)], request_timeout=_PATIENCE_SECONDS)
        try:
            created[TOPIC].result(_PATIENCE_SECONDS)
        except (KafkaException, TimeoutError) as cause:
            if cause.args and getattr(cause.args[0], "code", int)() == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            raise self._refused(f"the topic {TOPIC} could not be created: {cause}") from None

    def _produce(self, day: Day) -> None:
        from confluent_kafka import Producer

        lost: list[str] = []
        # idempotence: a retry of the client's own must not become a duplicate the oracle has not seen.
        producer = Producer(
            {"bootstrap.servers": self.bootstrap_servers, "enable.idempotence": True, "log_level": 2}
        )
        for message in day.messages:
            producer.produce(
                TOPIC,
                key=message.key,
                value=message.value,
                on_delivery=lambda error, _: lost.append(str(error)) if error else None,
            )
        unsent = producer.flush(_PATIENCE_SECONDS)
        if lost or unsent:
            reason = lost[0] if lost else f"no answer within {_PATIENCE_SECONDS} s"
            raise self._refused(
                f"{len(lost) + unsent} of {len(day.messages)} messages were not taken: {reason}"
            )

    def _refused(self, what: str) -> SourceError:
        return SourceError(
            "demo.broker-refused",
            what,
            where=self.bootstrap_servers,
            do="run `make demo` again; if it stays, `drawdown doctor` says what is wrong with the broker",
        )


def _move_in(target: Path, text: str) -> None:
    """Write beside the folder that is read, then rename: a reader never sees half a file."""
    aside = target.parent.parent / ".incoming" / target.name
    aside.parent.mkdir(parents=True, exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside.write_text(text, encoding="utf-8")
    aside.replace(target)
