"""A database of project.yaml: address and login. Other libpq settings cannot be set."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, StringConstraints, model_validator

from drawdown.values.model import EmptyIsNone, NumberFromText, OptionalLine, SpecModel, problem

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_VERIFYING = ("verify-ca", "verify-full")


def _one_line(password: SecretStr | None) -> SecretStr | None:
    if password is not None and _CONTROL.search(password.get_secret_value()):
        raise problem("wrong-value", "contains a control character", do="check for a trailing line break")
    return password


class Database(SpecModel):
    """A PostgreSQL database. ``connection``: an Airflow connection that holds user and password."""

    host: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:\-]{1,253}$")]
    port: Annotated[int, Field(ge=1, le=65535), NumberFromText] = 5432
    dbname: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.\-]{1,63}$")]
    user: OptionalLine = None
    password: Annotated[SecretStr | None, EmptyIsNone, AfterValidator(_one_line)] = None
    sslmode: Literal["disable", "prefer", "require", "verify-ca", "verify-full"] = "prefer"
    sslrootcert: OptionalLine = None
    connection: OptionalLine = None

    @property
    def address(self) -> str:
        """Return the address as errors show it."""
        return f"{self.host}:{self.port}/{self.dbname}"

    @model_validator(mode="after")
    def _login_is_whole(self) -> Database:
        if self.connection and (self.user or self.password):
            raise problem(
                "contradiction", "the login is in the connection", "connection", do="remove one of them"
            )
        if not self.connection and not self.user:
            raise problem("missing-key", "a database needs a user", do="add `user:`, or `connection:`")
        if self.sslrootcert and self.sslmode not in _VERIFYING:
            raise problem(
                "no-effect", f"sslmode {self.sslmode} verifies nothing", "sslrootcert",
                do="set `sslmode: verify-full`",
            )  # fmt: skip
        return self
