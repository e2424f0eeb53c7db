"""A temporary PostgreSQL server on this machine, for `drawdown test` and for tests."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from drawdown.errors import MachineError
from drawdown.processes.background import Background, last_lines
from drawdown.processes.ports import LOOPBACK, free_ports

DEBIAN = Path("/usr/lib/postgresql")
"""Where Debian keeps server programs, which are not on PATH: ``<version>/bin``."""

START_TIMEOUT = 60.0
# Durability is off, because the data are removed with the server.
_SETTINGS = {"fsync": "off", "max_connections": 120}


class PostgresServer:
    """``with PostgresServer() as server``: host, port, user, password; ``create_database()`` gives a URL.

    The server ends with this process, however that ends. As root it runs as the user ``postgres``,
    because PostgreSQL refuses root.

    Args:
        host: the address that it listens on; with another than the loopback one, any host may connect.
    """

    user = "drawdown"

    def __init__(self, host: str = LOOPBACK) -> None:
        self.host = host
        self.password = secrets.token_hex(12)
        self.port = 0
        self._programs = _programs()
        # Not in a caller's folder: the user postgres may not be allowed to enter its parents.
        self._folder = Path(tempfile.mkdtemp(prefix="drawdown-postgres-", dir="/tmp"))
        self._background = Background("postgres", self._folder / "control")
        self._names = count(1)

    def __enter__(self) -> Self:
        try:
            self._initialise()
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._background.pid() is not None:
            self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start, on its earlier port or a free one, and wait until it answers.

        Raises MachineError ``machine.died`` or ``postgres.timeout``.
        """
        self.port = self.port or free_ports(1)[0]
        where = {"listen_addresses": self.host, "port": self.port, "unix_socket_directories": self._folder}
        settings = {**_SETTINGS, **where}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        server = [str(self._programs / "postgres"), "-D", str(self._data), *options]
        self._background.start([*_as_server_user(), *server], os.environ)
        try:
            self._wait_ready()
        except BaseException:
            self._background.stop()
            raise

    def stop(self) -> None:
        """Stop at once, like a crash; ``start`` starts it again with its data."""
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")
        self._background.stop()

    def create_database(self) -> str:
        """Create an empty database and return its URL, postgresql://USER:PASSWORD@HOST:PORT/NAME."""
        import psycopg
        from psycopg import sql

        name = f"test_{next(self._names)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url(name)

    def url(self, database: str) -> str:
        """Return the address of a database of this server."""
        return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{database}"

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _initialise(self) -> None:
        password_file = self._folder / "password"
        password_file.write_text(self.password)
        password_file.chmod(0o600)
        for path in (self._folder, password_file):
            if os.geteuid() == 0:
                shutil.chown(path, "postgres", "postgres")
        self._run(
            "initdb",
            *("-D", self._data, "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"),
            *("-U", self.user, "-A", "scram-sha-256", f"--pwfile={password_file}"),
        )
        if self.host != LOOPBACK:
            with (self._data / "pg_hba.conf").open("a") as rules:
                rules.write("host all all all scram-sha-256\n")

    def _wait_ready(self) -> None:
        import psycopg

        deadline = time.monotonic() + START_TIMEOUT
        while True:
            self._background.require_alive()
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=5).close()
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline:
                    raise MachineError(
                        "postgres.timeout",
                        f"no answer within {START_TIMEOUT:.0f} s: {last_lines(self._background.log)}",
                        where=str(self._background.log),
                        do="check whether this machine is out of memory or disk space",
                    ) from error
                time.sleep(0.05)
            else:
                return

    def _run(self, program: str, *arguments: object) -> None:
        # Output goes to a file, because the server would keep a pipe open forever.
        with (self._folder / "output").open("w+") as output:
            done = subprocess.run(
                [*_as_server_user(), str(self._programs / program), *map(str, arguments)],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
            output.seek(0)
            said: Any = output.read().strip()
        if done.returncode:
            raise MachineError(
                "postgres.program", f"{program} failed: {said}", do="read the log; is the disk full?"
            )


def _as_server_user() -> list[str]:
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


def _programs() -> Path:
    """Return the folder of Debian's newest version; elsewhere the programs are on PATH."""
    versions = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda initdb: int(initdb.parts[-3]))
    if versions:
        return versions[-1].parent
    if on_path := shutil.which("initdb"):
        return Path(on_path).resolve().parent
    raise MachineError(
        "postgres.missing",
        "a PostgreSQL server is needed here, and its programs (initdb) are missing",
        do="apt-get install postgresql",
    )
