"""The price of a cluster profile per hour, and the time that is billed beside an application's own."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema, model_validator

from drawdown.values.duration import PositiveDuration
from drawdown.values.model import SpecModel, problem

GB = 2**30
"""Bytes of the `gb` in `gb_hour`: the `g` of `driver_memory: 1g`."""


def _amount(value: Any) -> Any:
    """Keep decimal digits as written: 0.1 is exactly a tenth, not a binary fraction."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return value
    try:
        return Decimal(str(value))
    except InvalidOperation:
        raise problem(
            "wrong-value", "is not an amount of money", do="write a number, for example 0.04"
        ) from None


Amount = Annotated[
    Decimal,
    BeforeValidator(_amount),
    Field(ge=0, le=1_000_000, allow_inf_nan=False),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1_000_000}),
]


class RequestPrice(SpecModel):
    """The price of 1,000 requests to object stores; a HEAD is a ``get``, and deleting is free."""

    list: Amount = Field(Decimal(0), json_schema_extra={"default": 0})
    put: Amount = Field(Decimal(0), json_schema_extra={"default": 0})
    get: Amount = Field(Decimal(0), json_schema_extra={"default": 0})

    @property
    def recorded(self) -> dict[str, str]:
        """Return the prices by kind of request as decimal text."""
        by_kind = {"list": self.list, "put": self.put, "get": self.get, "head": self.get}
        return {f"thousand_{kind}": str(amount) for kind, amount in by_kind.items() if amount}


class Price(SpecModel):
    """The price of one core and of one GB (2^30 bytes) of memory for an hour, and of requests.

    ``startup`` is billed for each application beside its own time, and ``minimum`` is the least that is
    billed for one.
    """

    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
    core_hour: Amount
    gb_hour: Amount = Field(Decimal(0), json_schema_extra={"default": 0})
    startup: PositiveDuration | None = None
    minimum: PositiveDuration | None = None
    requests: RequestPrice | None = None

    @model_validator(mode="after")
    def _costs_something(self) -> Price:
        if not self.core_hour and not self.gb_hour:
            raise problem(
                "no-effect",
                "the price is zero",
                do="set `core_hour:` or `gb_hour:` above zero, or remove `price:`",
            )
        return self

    @property
    def recorded(self) -> dict[str, str]:
        """Return what an application records: decimal text; microseconds of the durations that are set."""
        amounts = {"currency": self.currency, "core_hour": str(self.core_hour), "gb_hour": str(self.gb_hour)}
        durations = {"startup_us": self.startup, "minimum_us": self.minimum}
        return (
            amounts
            | {key: str(each.delta // timedelta(microseconds=1)) for key, each in durations.items() if each}
            | (self.requests.recorded if self.requests else {})
        )
