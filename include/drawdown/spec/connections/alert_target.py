"""Where alerts go: an address of the library Apprise, which is a secret as a whole."""

from __future__ import annotations

from pydantic import model_validator

from drawdown.spec.connections.broker import Secret
from drawdown.values.model import OptionalLine, SpecModel, problem


class AlertTarget(SpecModel):
    """An entry of ``alert_targets:``. ``connection``: an Airflow connection whose password is the address."""

    url: Secret = None
    connection: OptionalLine = None

    @model_validator(mode="after")
    def _has_at_most_one_address(self) -> AlertTarget:
        if self.connection and self.url:
            raise problem(
                "contradiction", "the address is in the connection", "connection", do="remove one of them"
            )
        return self
