"""A Kafka cluster of project.yaml: address, security and login."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, SecretStr, StringConstraints, model_validator

from drawdown.values.model import EmptyIsNone, OptionalLine, SpecModel, problem

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"]
_LOGIN = ("username", "password")
# Per mechanism the required and the optional keys.
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "PLAIN": _LOGIN,
    "SCRAM-SHA-256": _LOGIN,
    "SCRAM-SHA-512": _LOGIN,
    "OAUTHBEARER": (*_LOGIN, "token_endpoint"),
    "GSSAPI": ("principal", "keytab"),
}
_MAY_HAVE: Mapping[str, tuple[str, ...]] = {"OAUTHBEARER": ("scope",), "GSSAPI": ("service_name",)}
_OF_MECHANISMS = (*_LOGIN, "connection", "token_endpoint", "scope", "principal", "keytab", "service_name")
_OF_TLS = ("ssl_ca_location", "ssl_keystore_location")


def _one_line(secret: SecretStr | None) -> SecretStr | None:
    if secret is not None and _CONTROL.search(secret.get_secret_value()):
        raise problem("wrong-value", "contains a control character", do="check for a trailing line break")
    return secret


Secret = Annotated[SecretStr | None, EmptyIsNone, AfterValidator(_one_line)]


def _address(value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"https?://[^\s@]+", value):
        raise problem("wrong-value", "is not an address", do="write https://host/path, without a login")
    return value


Address = Annotated[OptionalLine, AfterValidator(_address)]


class Broker(SpecModel):
    """A Kafka cluster, in neutral terms: rendered for Spark and for librdkafka where it is used.

    ``connection`` is the id of an Airflow connection that holds username and password instead. OAUTHBEARER
    asks ``token_endpoint`` with them, as the client's id and secret. ``principal``, ``keytab`` and
    ``service_name`` are for Kerberos. ``ssl_keystore_location`` is a PEM file with the client's private key
    (not encrypted: Kafka's Java client cannot read what openssl encrypts, PBES2) and certificates.
    """

    bootstrap_servers: Annotated[
        str,
        StringConstraints(pattern=r"^[A-Za-z0-9_.\-\[\]]+:[0-9]{1,5}(,[A-Za-z0-9_.\-\[\]]+:[0-9]{1,5})*$"),
    ]
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Annotated[Mechanism | None, EmptyIsNone] = None
    username: OptionalLine = None
    password: Secret = None
    token_endpoint: Address = None
    scope: OptionalLine = None
    principal: OptionalLine = None
    keytab: OptionalLine = None
    service_name: OptionalLine = None
    ssl_ca_location: OptionalLine = None
    ssl_keystore_location: OptionalLine = None
    connection: OptionalLine = None

    @model_validator(mode="after")
    def _login_is_whole(self) -> Broker:
        if self.connection and (self.username or self.password):
            raise problem(
                "contradiction", "the login is in the connection", "connection", do="remove one of them"
            )
        if not self.security_protocol.startswith("SASL"):
            self._refuse(
                ("sasl_mechanism", *_OF_MECHANISMS), f"{self.security_protocol} has no login", "say SASL_SSL"
            )
            return self
        if self.sasl_mechanism is None:
            raise problem(
                "missing-key", f"{self.security_protocol} needs sasl_mechanism", do="add `sasl_mechanism:`"
            )
        needs = _NEEDS[self.sasl_mechanism]
        for key in needs:
            if getattr(self, key) is None and not (self.connection and key in _LOGIN):
                what = f"{self.security_protocol} needs {key}"
                if needs != _LOGIN:
                    what = f"{self.sasl_mechanism} needs {key}"
                raise problem("missing-key", what, do=f"add `{key}:`")
        takes = {
            *needs,
            *_MAY_HAVE.get(self.sasl_mechanism, ()),
            *(("connection",) if needs[:2] == _LOGIN else ()),
        }
        others = [key for key in _OF_MECHANISMS if key not in takes]
        self._refuse(others, f"{self.sasl_mechanism} does not use it", "remove the key")
        return self

    @model_validator(mode="after")
    def _tls_is_whole(self) -> Broker:
        if not self.security_protocol.endswith("SSL"):
            self._refuse(_OF_TLS, "TLS keys need SSL or SASL_SSL", "remove the key")
        return self

    def _refuse(self, keys: Iterable[str], what: str, do: str) -> None:
        for key in keys:
            if getattr(self, key) is not None:
                raise problem("no-effect", what, key, do=do)
