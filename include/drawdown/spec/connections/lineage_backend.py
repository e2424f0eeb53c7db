"""Where OpenLineage events of runs go: a server, or a file."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, SecretStr, StringConstraints, model_validator

from drawdown.spec.connections.broker import Address, Secret
from drawdown.values.model import EmptyIsNone, OptionalLine, SpecModel, problem


def _local(value: str | None) -> str | None:
    if value is not None and re.match(r"[A-Za-z][A-Za-z0-9+.\-]*://", value):
        raise problem("wrong-value", "is not a path", do="write a path of this machine")
    return value


Endpoint = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.\-/]{1,200}$")]
Namespace = Annotated[
    Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:\-/]{1,200}$")] | None, EmptyIsNone
]


class LineageBackend(SpecModel):
    """The backend of lineage events; without ``url`` and ``file`` the environment says whether there is one.

    ``connection``: an Airflow connection whose password is the key. ``namespace``: of the jobs.
    """

    url: Address = None
    endpoint: Endpoint = "api/v1/lineage"
    api_key: Secret = None
    connection: OptionalLine = None
    file: Annotated[OptionalLine, AfterValidator(_local)] = None
    namespace: Namespace = None

    @model_validator(mode="after")
    def _goes_to_one_place(self) -> LineageBackend:
        if self.url and self.file:
            raise problem("contradiction", "events go to `url`", "file", do="remove one of them")
        if self.connection and self.api_key:
            raise problem(
                "contradiction", "the key is in the connection", "connection", do="remove one of them"
            )
        return self

    def with_key(self, key: SecretStr) -> LineageBackend:
        """Return it with the key of its connection."""
        return self.model_copy(update={"api_key": key})
