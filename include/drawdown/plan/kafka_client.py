"""A broker of project.yaml in librdkafka's words, for clients that run without Spark.

Spark's words for the same broker are in spec/broker_options.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drawdown.errors import SourceError
from drawdown.spec import Broker

if TYPE_CHECKING:
    from confluent_kafka import KafkaException


def client_config(broker: Broker) -> dict[str, str | int | float | bool]:
    """Connection and security settings for a confluent-kafka client (librdkafka's CONFIGURATION.md).

    Holds the password in the clear: never log it.
    """
    config: dict[str, str | int | float | bool] = {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": broker.security_protocol,
        # What goes wrong comes back as an error; librdkafka would also write it to stderr.
        "log_level": 0,
    }
    if broker.sasl_mechanism:
        config["sasl.mechanism"] = broker.sasl_mechanism
    if broker.username is not None:
        config["sasl.username"] = broker.username
    if broker.password is not None:
        config["sasl.password"] = broker.password.get_secret_value()
    if broker.ssl_ca_location:
        config["ssl.ca.location"] = str(broker.ssl_ca_location)
    return config


def no_answer(broker: Broker, error_id: str, whose: str, cause: KafkaException) -> SourceError:
    """The error for a broker that does not answer; ``whose`` is the source or sink it belongs to."""
    return SourceError(
        error_id,
        f"the broker of {whose} does not answer: {cause.args[0].str()}",
        where=broker.bootstrap_servers,
        do="start the broker, or correct `brokers:` in include/project.yaml",
    )
