"""A real broker with a listener that asks for a certificate, and one with a login (SCRAM) over TLS."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from drawdown.processes.ports import LOOPBACK, free_ports
from drawdown.testing.servers.kafka import KafkaServer

_LISTENERS = """
listeners={plain},TLS://{host}:{tls},LOGIN://{host}:{login},{controller}
advertised.listeners={plain},TLS://{host}:{tls},LOGIN://{host}:{login}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,LOGIN:SASL_SSL
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.login.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.tls.ssl.client.auth=required
ssl.keystore.type=PEM
ssl.keystore.location={folder}/server.pem
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
"""


class TlsBroker(KafkaServer):
    """``tls_servers`` asks for a certificate, ``login_servers`` for a login, the plain one for none.

    In ``folder`` are ``ca.pem`` and ``client.pem``.
    """

    def __init__(self, folder: Path, *, state_dir: Path) -> None:
        super().__init__(folder, state_dir=state_dir)
        self._tls, self._login = free_ports(2)
        self.tls_servers, self.login_servers = f"{LOOPBACK}:{self._tls}", f"{LOOPBACK}:{self._login}"
        self.folder.mkdir(parents=True)
        authority = _Authority(self.folder)
        authority.issue("server")
        authority.issue("client")

    def add_user(self, user: str, password: str) -> None:
        """Lets the user log in by SCRAM-SHA-512."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        asked = [UserScramCredentialUpsertion(user, info, password.encode())]
        client = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        for done in client.alter_user_scram_credentials(asked).values():
            done.result(30)

    def _write_settings(self, port: int, controller: int) -> Path:
        settings = super()._write_settings(port, controller)
        plain, control = f"PLAINTEXT://{LOOPBACK}:{port}", f"CONTROLLER://{LOOPBACK}:{controller}"
        here = {"host": LOOPBACK, "tls": self._tls, "login": self._login, "folder": self.folder}
        more = _LISTENERS.format(plain=plain, controller=control, **here)
        settings.write_text(settings.read_text() + more)
        return settings


class _Authority:
    """A certificate authority of one test; writes ``ca.pem``."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._key = folder, _new_key()
        self._name = _named("test authority")
        builder = _builder(self._name, self._name, self._key)
        own = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self._certificate = own.sign(self._key, hashes.SHA256())
        (folder / "ca.pem").write_bytes(_pem(self._certificate))

    def issue(self, name: str) -> None:
        """Writes ``<name>.pem``: a private key and its certificates."""
        key = _new_key()
        here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(LOOPBACK))])
        builder = _builder(_named(name), self._name, key).add_extension(here, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        closed = serialization.NoEncryption()
        private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, closed)
        file = self._folder / f"{name}.pem"
        file.touch(mode=0o600)
        file.write_bytes(private + _pem(certificate) + _pem(self._certificate))


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(subject: x509.Name, issuer: x509.Name, key: rsa.RSAPrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
