"""Whether a broker answers: asked for seconds, where Spark would wait for minutes."""

from __future__ import annotations

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from drawdown.plan.kafka_client import client_config, no_answer
from drawdown.spec import Broker

_SECONDS = 10.0


def require_broker(broker: Broker, error_id: str, whose: str) -> None:
    """Raise SourceError when it does not answer; ``whose`` is the source or sink it belongs to."""
    try:
        AdminClient(client_config(broker)).list_topics(timeout=_SECONDS)
    except KafkaException as cause:
        raise no_answer(broker, error_id, whose, cause) from None
