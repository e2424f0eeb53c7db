"""A real broker that asks for a user and a password (SASL PLAIN) on a second listener."""

from __future__ import annotations

from pathlib import Path

from drawdown.processes.ports import LOOPBACK, free_ports
from drawdown.testing.servers.kafka import KafkaServer

_LOGIN = """
listeners={plain},LOGIN://{host}:{port},{controller}
advertised.listeners={plain},LOGIN://{host}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.login.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
"""


class LoginBroker(KafkaServer):
    """``bootstrap_servers`` asks for nothing, ``login_servers`` for a login."""

    def __init__(self, folder: Path, user: str, password: str, *, state_dir: Path) -> None:
        super().__init__(folder, state_dir=state_dir)
        [self._login_port] = free_ports(1)
        self.login_servers = f"{LOOPBACK}:{self._login_port}"
        self._user, self._password = user, password

    def _write_settings(self, port: int, controller: int) -> Path:
        settings = super()._write_settings(port, controller)
        settings.write_text(
            settings.read_text()
            + _LOGIN.format(
                plain=f"PLAINTEXT://{LOOPBACK}:{port}",
                controller=f"CONTROLLER://{LOOPBACK}:{controller}",
                host=LOOPBACK,
                port=self._login_port,
                user=self._user,
                password=self._password,
            )
        )
        return settings
