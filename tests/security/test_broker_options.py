"""Broker credentials reach Kafka exactly as written, whatever characters are in them.

The JAAS text is read back with java.io.StreamTokenizer, set up as in Kafka's own
org.apache.kafka.common.security.JaasConfig.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from py4j.java_gateway import JavaGateway, get_field
from pydantic import SecretStr, ValidationError
from pyspark.java_gateway import launch_gateway

from drawdown.brokers.client import client_config
from drawdown.spec import Broker
from drawdown.spec.connections.broker_options import spark_options

ATTACKS = [
    "plain",
    "",
    'a"b',
    "a'b",
    "a\\",
    '\\"',
    'x" serviceName="other',
    'x"; org.apache.kafka.common.security.plain.PlainLoginModule required username="root',
    "x;",
    "x // y",
    "x /* y */",
    "line\nbreak",
    "line\r\nbreak",
    "\\n",
    "\\042",
    "ünïcode ☃",
    "${file:/etc/passwd:x}",
    "tab\tand space ",
]


@pytest.fixture(scope="module")
def java() -> Iterator[JavaGateway]:
    gateway = launch_gateway()
    yield gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=20)


@pytest.fixture(scope="module")
def entry(java: JavaGateway) -> Callable[[str], tuple[str, str, dict[str, str]]]:
    """Reads a JAAS text as Kafka does: login module, control flag and options."""

    def read(text: str) -> tuple[str, str, dict[str, str]]:
        jvm: Any = java.jvm
        tokens = jvm.java.io.StreamTokenizer(jvm.java.io.StringReader(text))
        tokens.slashSlashComments(True)
        tokens.slashStarComments(True)
        for char in "-_$":
            tokens.wordChars(ord(char), ord(char))

        def word() -> str:
            tokens.nextToken()
            text = get_field(tokens, "sval")
            assert text is not None, "Kafka expects a word here"
            return str(text)

        module, flag = word(), word()
        options: dict[str, str] = {}
        while tokens.nextToken() != ord(";"):
            key = str(get_field(tokens, "sval"))
            assert tokens.nextToken() == ord("=")
            options[key] = word()
        assert tokens.nextToken() == -1, "there is a second entry"
        return module, flag, options

    return read


def broker(username: str, password: str, mechanism: str = "PLAIN") -> Broker:
    """Unchecked: the quoting must hold also for what the spec would refuse."""
    return Broker.model_construct(
        bootstrap_servers="h:1",
        security_protocol="SASL_SSL",
        sasl_mechanism=mechanism,
        username=username,
        password=SecretStr(password),
        ssl_ca_location=None,
    )


@pytest.mark.parametrize("attack", ATTACKS)
def test_kafka_reads_back_the_very_user_and_password(entry: Any, attack: str) -> None:
    text = spark_options(broker(attack, attack))["kafka.sasl.jaas.config"]
    module, flag, options = entry(text)
    assert module.endswith("PlainLoginModule")
    assert (flag, options) == ("required", {"username": attack, "password": attack})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_kafka_reads_back_any_password(entry: Any, password: str) -> None:
    text = spark_options(broker("user", password, "SCRAM-SHA-512"))["kafka.sasl.jaas.config"]
    module, _, options = entry(text)
    assert module.endswith("ScramLoginModule")
    assert options == {"username": "user", "password": password}


def test_a_broker_without_login_says_only_where_it_is() -> None:
    options = spark_options(Broker(bootstrap_servers="h:1,g:2"))
    assert options == {"kafka.bootstrap.servers": "h:1,g:2", "kafka.security.protocol": "PLAINTEXT"}


def test_both_renderings_say_the_same() -> None:
    one = broker("u", "p", "SCRAM-SHA-256")
    config, options = client_config(one), spark_options(one)
    for ours, sparks in (
        ("bootstrap.servers", "kafka.bootstrap.servers"),
        ("security.protocol", "kafka.security.protocol"),
        ("sasl.mechanism", "kafka.sasl.mechanism"),
    ):
        assert config[ours] == options[sparks]
    assert (config["sasl.username"], config["sasl.password"]) == ("u", "p")


def test_a_certificate_authority_reaches_both_clients() -> None:
    tls = Broker(bootstrap_servers="h:1", security_protocol="SSL", ssl_ca_location="/etc/ssl/ca.pem")
    assert client_config(tls)["ssl.ca.location"] == "/etc/ssl/ca.pem"
    assert spark_options(tls)["kafka.ssl.truststore.location"] == "/etc/ssl/ca.pem"
    assert spark_options(tls)["kafka.ssl.truststore.type"] == "PEM"


def test_oauth_and_kerberos_reach_both_clients(entry: Any) -> None:
    tokens = Broker(
        bootstrap_servers="h:1",
        security_protocol="SASL_SSL",
        sasl_mechanism="OAUTHBEARER",
        username="me",
        password=SecretStr('s"'),
        token_endpoint="https://login.example.com/token",
        scope="kafka",
    )
    options, config = spark_options(tokens), client_config(tokens)
    module, _, values = entry(options["kafka.sasl.jaas.config"])
    assert module.endswith("OAuthBearerLoginModule")
    assert values == {"clientId": "me", "clientSecret": 's"', "scope": "kafka"}
    assert options["kafka.sasl.login.callback.handler.class"].endswith("OAuthBearerLoginCallbackHandler")
    assert options["kafka.sasl.oauthbearer.token.endpoint.url"] == tokens.token_endpoint
    assert config["sasl.oauthbearer.method"] == "oidc"
    assert config["sasl.oauthbearer.client.secret"] == 's"'
    assert "sasl.password" not in config

    kerberos = Broker(
        bootstrap_servers="h:1",
        security_protocol="SASL_SSL",
        sasl_mechanism="GSSAPI",
        principal="me@REALM",
        keytab="/etc/me.keytab",
    )
    options, config = spark_options(kerberos), client_config(kerberos)
    module, _, values = entry(options["kafka.sasl.jaas.config"])
    assert module == "com.sun.security.auth.module.Krb5LoginModule"
    assert values == {
        "useKeyTab": "true", "storeKey": "true", "keyTab": "/etc/me.keytab", "principal": "me@REALM"
    }  # fmt: skip
    assert options["kafka.sasl.kerberos.service.name"] == config["sasl.kerberos.service.name"] == "kafka"
    assert config["sasl.kerberos.keytab"] == "/etc/me.keytab"


@pytest.mark.parametrize(
    ("keys", "id"),
    [
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER", "username": "u",
          "password": SecretStr("p")}, "missing-key"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI", "principal": "u"}, "missing-key"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI", "principal": "u", "keytab": "k",
          "username": "u"}, "no-effect"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI", "principal": "u", "keytab": "k",
          "connection": "c"}, "no-effect"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "username": "u",
          "password": SecretStr("p"), "keytab": "k"}, "no-effect"),
        ({"security_protocol": "SSL", "principal": "u"}, "no-effect"),
        ({"security_protocol": "PLAINTEXT", "ssl_keystore_location": "k"}, "no-effect"),
    ],
)  # fmt: skip
def test_keys_that_do_not_fit_together_are_refused(keys: dict[str, Any], id: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Broker(bootstrap_servers="h:1", **keys)
    assert refused.value.errors()[0]["type"] == id
