"""A broker of project.yaml as options of Spark's Kafka source and sink.

brokers/client.py has librdkafka's options for the same broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drawdown.spec import Broker

SERVICE_NAME = "kafka"
"""The brokers' Kerberos service name if the spec does not set it."""

_KAFKA = "org.apache.kafka.common.security"
_MODULES = {
    "PLAIN": f"{_KAFKA}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_KAFKA}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_KAFKA}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_KAFKA}.oauthbearer.OAuthBearerLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
}
_TOKENS = f"{_KAFKA}.oauthbearer.OAuthBearerLoginCallbackHandler"
# The characters that are special inside double quotes to java.io.StreamTokenizer, with which Kafka's
# JaasConfig parses the text: a line end would end the value.
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"})


def spark_options(broker: Broker) -> dict[str, str]:
    """Return connection and security settings as Spark's ``kafka.*`` options.

    Contains the password in plain text: for `options(**...)` of a reader or writer only, never for a
    ``--conf`` or a log.
    """
    options = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "kafka.security.protocol": broker.security_protocol,
    }
    if broker.sasl_mechanism:
        options["kafka.sasl.mechanism"] = broker.sasl_mechanism
        options["kafka.sasl.jaas.config"] = _jaas(broker)
    if broker.sasl_mechanism == "OAUTHBEARER":
        options["kafka.sasl.login.callback.handler.class"] = _TOKENS
        options["kafka.sasl.oauthbearer.token.endpoint.url"] = str(broker.token_endpoint)
    if broker.sasl_mechanism == "GSSAPI":
        options["kafka.sasl.kerberos.service.name"] = broker.service_name or SERVICE_NAME
    if broker.ssl_ca_location:
        options["kafka.ssl.truststore.type"] = "PEM"
        options["kafka.ssl.truststore.location"] = str(broker.ssl_ca_location)
    if broker.ssl_keystore_location:
        options["kafka.ssl.keystore.type"] = "PEM"
        options["kafka.ssl.keystore.location"] = str(broker.ssl_keystore_location)
    return options


def _jaas(broker: Broker) -> str:
    """Return one JAAS entry; values can neither end their quotes nor add an option (_ESCAPES)."""
    quoted = " ".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in _values(broker).items())
    return f"{_MODULES[broker.sasl_mechanism or 'PLAIN']} required {quoted};"


def _values(broker: Broker) -> dict[str, str]:
    user, password = broker.username or "", broker.password.get_secret_value() if broker.password else ""
    if broker.sasl_mechanism == "OAUTHBEARER":
        scope = {"scope": broker.scope} if broker.scope else {}
        return {"clientId": user, "clientSecret": password, **scope}
    if broker.sasl_mechanism == "GSSAPI":
        files = {"keyTab": str(broker.keytab), "principal": str(broker.principal)}
        return {"useKeyTab": "true", "storeKey": "true", **files}
    return {"username": user, "password": password}
