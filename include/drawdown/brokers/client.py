"""A broker of project.yaml as librdkafka's settings, for clients that run without Spark.

Spark's settings for the same broker are in spec/connections/broker_options.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drawdown.errors import SourceError
from drawdown.spec import Broker
from drawdown.spec.connections.broker_options import SERVICE_NAME

if TYPE_CHECKING:
    from confluent_kafka import KafkaException

_ANSWERS_WITHIN = 10.0


def client_config(broker: Broker) -> dict[str, str | int | float | bool]:
    """Return connection and security settings for a confluent-kafka client (librdkafka's CONFIGURATION.md).

    Holds the password in the clear: never log it.
    """
    config: dict[str, str | int | float | bool] = {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": broker.security_protocol,
        # Failures are returned as errors; librdkafka would also write them to stderr.
        "log_level": 0,
    }
    if broker.sasl_mechanism:
        config["sasl.mechanism"] = broker.sasl_mechanism
    config |= _login(broker)
    if broker.ssl_ca_location:
        config["ssl.ca.location"] = str(broker.ssl_ca_location)
    if broker.ssl_keystore_location:
        # One PEM file holds both: Kafka's Java clients accept only one file.
        config["ssl.certificate.location"] = str(broker.ssl_keystore_location)
        config["ssl.key.location"] = str(broker.ssl_keystore_location)
    return config


def _login(broker: Broker) -> dict[str, str]:
    user = broker.username
    password = broker.password.get_secret_value() if broker.password else None
    values: dict[str, str | None] = {"sasl.username": user, "sasl.password": password}
    if broker.sasl_mechanism == "OAUTHBEARER":
        values = {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": user,
            "sasl.oauthbearer.client.secret": password,
            "sasl.oauthbearer.token.endpoint.url": broker.token_endpoint,
            "sasl.oauthbearer.scope": broker.scope,
        }
    if broker.sasl_mechanism == "GSSAPI":
        values = {
            "sasl.kerberos.service.name": broker.service_name or SERVICE_NAME,
            "sasl.kerberos.principal": broker.principal,
            "sasl.kerberos.keytab": broker.keytab,
        }
    return {key: value for key, value in values.items() if value is not None}


def no_answer(broker: Broker, error_id: str, whose: str, cause: KafkaException) -> SourceError:
    """Return the error for a broker that does not answer; ``whose`` is the source or sink it belongs to."""
    return SourceError(
        error_id,
        f"the broker of {whose} does not answer: {cause.args[0].str()}",
        where=broker.bootstrap_servers,
        do="start the broker, or correct `brokers:` in include/project.yaml; `drawdown doctor` asks each",
    )


def require_broker(broker: Broker, error_id: str, whose: str, seconds: float = _ANSWERS_WITHIN) -> None:
    """Raise SourceError when the broker does not answer within seconds; Spark would wait for minutes.

    Args:
        whose: the source or sink it belongs to.
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        AdminClient(client_config(broker)).list_topics(timeout=seconds)
    except KafkaException as cause:
        raise no_answer(broker, error_id, whose, cause) from None
