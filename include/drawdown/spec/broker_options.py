"""A broker of project.yaml as options of Spark's Kafka source and sink.

librdkafka's words for the same broker are in plan/kafka_client.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drawdown.spec import Broker

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
# What java.io.StreamTokenizer, by which Kafka's JaasConfig reads the text, takes for special inside
# double quotes: a line end would end the value.
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"})


def spark_options(broker: Broker) -> dict[str, str]:
    """Connection and security settings, as Spark's ``kafka.*`` options.

    Holds the password in the clear: for `options(**...)` of a reader or writer only, never for a
    ``--conf`` or a log.
    """
    options = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "kafka.security.protocol": broker.security_protocol,
    }
    if broker.sasl_mechanism:
        options["kafka.sasl.mechanism"] = broker.sasl_mechanism
        options["kafka.sasl.jaas.config"] = _jaas(broker)
    if broker.ssl_ca_location:
        options["kafka.ssl.truststore.type"] = "PEM"
        options["kafka.ssl.truststore.location"] = str(broker.ssl_ca_location)
    return options


def _jaas(broker: Broker) -> str:
    """One JAAS entry; a value can neither end its quotes nor add an option (_ESCAPES)."""
    password = broker.password.get_secret_value() if broker.password else ""
    values = {"username": broker.username or "", "password": password}
    quoted = " ".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in values.items())
    return f"{_MODULES[broker.sasl_mechanism or 'PLAIN']} required {quoted};"
