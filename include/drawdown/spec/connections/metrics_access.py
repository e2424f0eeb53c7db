"""Who may read /drawdown/metrics: whoever has a token of its own."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, SecretStr, model_validator

from drawdown.spec.connections.broker import Secret
from drawdown.values.model import OptionalLine, SpecModel, problem

SHORTEST = 16
"""Characters of a token: fewer could be guessed."""


def _long(token: SecretStr | None) -> SecretStr | None:
    if token is not None and len(token.get_secret_value()) < SHORTEST:
        raise problem(
            "wrong-value", f"is shorter than {SHORTEST} characters", do="make one: openssl rand -hex 32"
        )
    return token


class MetricsAccess(SpecModel):
    """``metrics:`` of project.yaml. ``connection``: an Airflow connection whose password is the token."""

    token: Annotated[Secret, AfterValidator(_long)] = None
    connection: OptionalLine = None

    @model_validator(mode="after")
    def _has_one_token(self) -> MetricsAccess:
        if self.connection and self.token:
            raise problem(
                "contradiction", "the token is in the connection", "connection", do="remove one of them"
            )
        return self
