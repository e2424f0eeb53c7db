"""`make env`: writes .env for docker-compose.yaml from .env.example, with secrets of its own.

Standard library only: a machine that runs containers has no environment of ours.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import sys
from pathlib import Path

from drawdown.errors import DrawdownError, MachineError

ROOT = Path(__file__).resolve().parents[1]
_EMPTY = re.compile(r"^(\w+)=$", re.MULTILINE)


def write_env(root: Path) -> Path:
    """Write ``<root>/.env`` (mode 0600): ``.env.example`` with a secret behind every empty ``NAME=``.

    Raises MachineError ``deployment.env-exists``: the secrets of an installation are made once.
    """
    example, target = root / ".env.example", root / ".env"
    text = _EMPTY.sub(lambda found: f"{found[1]}={_secret()}", example.read_text())
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise MachineError(
            "deployment.env-exists",
            "there is an .env already, and the databases know its passwords",
            where=str(target),
            do="keep it; for a new installation remove its volumes and the file: "
            "docker compose down --volumes && rm .env",
        ) from None
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
    return target


def _secret() -> str:
    """32 random bytes in the form that Airflow's Fernet key must have; as good for all others."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def main() -> int:
    """Write the project's .env; prints errors without a trace."""
    try:
        target = write_env(ROOT)
    except DrawdownError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"Wrote {target}: only you can read it. Next: docker compose up --build --detach")
    return 0


if __name__ == "__main__":
    sys.exit(main())
