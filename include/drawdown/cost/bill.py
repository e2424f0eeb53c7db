"""A bill: what runs requested, used and cost. Bills can be added; nothing is rounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from drawdown.spec.clusters.price import GB

HOUR_US = 3_600_000_000
"""Microseconds."""


@dataclass(frozen=True)
class Bill:
    """Sums over runs; runs with unknown parts are counted separately.

    Attributes:
        rows: read.
        core_us: core-microseconds requested; ``cpu_us`` those used, ``idle_us`` those requested while no run
            of the application was active.
        byte_us: bytes requested times microseconds; ``peak_us`` with the greatest size instead.
        requests: to object stores, by kind.
        money: currency to amount.
        unpriced: runs whose profile had no price.
        unmeasured: runs with unknown use: they were killed, or are still running. Their requested amount
            counts up to their last heartbeat.
        unknown: runs that predate cost tracking: in no sum.
    """

    runs: int = 0
    rows: int = 0
    core_us: int = 0
    cpu_us: int = 0
    idle_us: int = 0
    byte_us: int = 0
    peak_us: int = 0
    requests: Mapping[str, int] = field(default_factory=dict)
    money: Mapping[str, Fraction] = field(default_factory=dict)
    unpriced: int = 0
    unmeasured: int = 0
    unknown: int = 0

    def __add__(self, other: Bill) -> Bill:
        money = {**self.money}
        for currency, amount in other.money.items():
            money[currency] = money.get(currency, Fraction(0)) + amount
        return Bill(
            self.runs + other.runs,
            self.rows + other.rows,
            self.core_us + other.core_us,
            self.cpu_us + other.cpu_us,
            self.idle_us + other.idle_us,
            self.byte_us + other.byte_us,
            self.peak_us + other.peak_us,
            dict(Counter(self.requests) + Counter(other.requests)),
            money,
            self.unpriced + other.unpriced,
            self.unmeasured + other.unmeasured,
            self.unknown + other.unknown,
        )

    @property
    def core_hours(self) -> Fraction:
        """Asked for."""
        return Fraction(self.core_us, HOUR_US)

    @property
    def cpu_hours(self) -> Fraction:
        """Used."""
        return Fraction(self.cpu_us, HOUR_US)

    @property
    def idle_hours(self) -> Fraction:
        """Requested core-hours while no run of the application was active."""
        return Fraction(self.idle_us, HOUR_US)

    @property
    def gb_hours(self) -> Fraction:
        """Asked for; a GB is 2^30 bytes."""
        return Fraction(self.byte_us, HOUR_US * GB)

    @property
    def peak_gb_hours(self) -> Fraction:
        """Based on the greatest size, not the mean."""
        return Fraction(self.peak_us, HOUR_US * GB)


def bill_of(usage: Mapping[str, Any], rows: int = 0) -> Bill:
    """Return the bill of one run, from `Run.usage`."""
    core_us, byte_us = usage["us"] * usage["cores"], usage["us"] * usage["memory"]
    billed = usage["us"] + usage.get("extra_us", 0)
    return Bill(
        runs=1,
        rows=rows,
        core_us=core_us,
        cpu_us=usage["cpu_us"] or 0,
        idle_us=usage["idle_us"] * usage["cores"],
        byte_us=byte_us,
        peak_us=usage["us"] * (usage["peak"] or 0),
        requests=usage.get("requests", {}),
        money=money(
            usage["price"], billed * usage["cores"], billed * usage["memory"], usage.get("requests", {})
        ),
        unpriced=int(usage["price"] is None),
        unmeasured=int(usage["cpu_us"] is None),
    )


def money(
    price: Mapping[str, str] | None, core_us: int, byte_us: int, requests: Mapping[str, int] | None = None
) -> dict[str, Fraction]:
    """Return the cost at a price in SparkApplication's form; {} without a price."""
    if price is None:
        return {}
    core_hour, gb_hour = (Fraction(Decimal(price[key])) for key in ("core_hour", "gb_hour"))
    amount = core_hour * Fraction(core_us, HOUR_US) + gb_hour * Fraction(byte_us, HOUR_US * GB)
    for kind, times in (requests or {}).items():
        amount += Fraction(Decimal(price.get(f"thousand_{kind}", "0"))) * Fraction(times, 1_000)
    return {price["currency"]: amount}
