"""The settings that master, workers and drivers of one cluster share in a file, and nobody else may read."""

from __future__ import annotations

import secrets
from pathlib import Path

from drawdown.launch.standalone.page_token import FILTER, KEY
from drawdown.processes.ports import is_loopback


def write_private_settings(file: Path, host: str) -> None:
    """Write a Java properties file of mode 0600 with a new secret.

    Args:
        host: the address of the daemons. If it is not of the loopback interface, their connections and the
            files of shuffles are encrypted, and their pages ask for a token.
    """
    settings = {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secrets.token_hex(32),
        # The REST server does not check the secret (org.apache.spark.deploy.rest.StandaloneRestServer).
        "spark.master.rest.enabled": "false",
        # The pages do not check it either, and have buttons.
        "spark.ui.killEnabled": "false",
        "spark.master.ui.decommission.allow.mode": "DENY",
        # Use only the port that was found free.
        "spark.port.maxRetries": "0",
    }
    if not is_loopback(host):
        settings |= {
            "spark.network.crypto.enabled": "true",
            "spark.network.crypto.cipher": "AES/GCM/NoPadding",
            "spark.network.crypto.authEngineVersion": "2",
            "spark.network.crypto.saslFallback": "false",
            "spark.io.encryption.enabled": "true",
            "spark.io.encryption.keySizeBits": "256",
            "spark.ui.filters": FILTER,
            KEY: secrets.token_urlsafe(32),
        }
    file.touch(mode=0o600)
    file.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))


def private_setting(file: Path, key: str) -> str | None:
    """Return the value of a setting; None when the file does not have it."""
    pairs = (line.partition(" ") for line in file.read_text().splitlines())
    return next((value for name, _, value in pairs if name == key), None)
