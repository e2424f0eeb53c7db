"""Cluster profiles: their common part, and the kinds whose driver runs on this machine."""

from __future__ import annotations

import os
from typing import Annotated, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag, model_validator

from drawdown.spec.clusters.price import GB, Price
from drawdown.spec.reading.secrets import holds_a_secret, names_a_secret
from drawdown.values.duration import Duration, PositiveDuration
from drawdown.values.model import Line, NumberFromText, OptionValue, SpecModel, problem

# Drawdown sets them and records them in a fingerprint, so profiles must not set them.
_OWN_CONF = ("spark.sql.session.timeZone", "spark.master", "spark.driver.memory")

_BYTES = {"k": GB // 2**20, "m": GB // 2**10, "g": GB, "t": GB * 2**10}

Memory = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,5}[mg]$")]
"""An amount of memory in Spark's notation: ``512m``, ``2g``."""

Size = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,5}[kmgt]$")]
"""An amount of data in the same notation."""

Host = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.\-]{0,251}[A-Za-z0-9])?$")]
"""An IPv4 address or a name."""

Count = Annotated[int, Field(ge=1, le=10**9), NumberFromText]
Number = Annotated[int, Field(ge=1, le=1_000), NumberFromText]


class Cluster(SpecModel):
    """The keys that every kind of cluster profile has."""

    kind: str
    driver_memory: Memory = "1g"
    price: Price | None = None
    conf: dict[Annotated[str, StringConstraints(pattern=r"^spark\.[A-Za-z0-9_.\-]{1,200}$")], OptionValue] = (
        Field(default_factory=dict)
    )

    @model_validator(mode="after")
    def _conf_is_public(self) -> Cluster:
        for key, value in self.conf.items():
            if names_a_secret(key) or holds_a_secret(value):
                raise problem(
                    "secret", "`conf:` is visible to every user of the machine", "conf", key,
                    do="pass credentials in the driver's environment",
                )  # fmt: skip
            if key in _OWN_CONF:
                raise problem("no-effect", "Drawdown sets this itself", "conf", key, do="remove the key")
        return self

    @property
    def cores(self) -> int:
        """Return the driver's cores; those of executors are known only once Spark has them."""
        return 1

    @property
    def memory_bytes(self) -> int:
        """Return the driver's memory."""
        return in_bytes(self.driver_memory)


class LocalCluster(Cluster):
    """Driver and executors in one process of this machine."""

    kind: Literal["local"] = "local"
    master: Annotated[str, StringConstraints(pattern=r"^local\[([1-9][0-9]{0,3}|\*)\]$")] = "local[2]"

    @property
    def cores(self) -> int:
        """Return the requested cores; `*` means all that this process may use."""
        asked = self.master.removeprefix("local[").removesuffix("]")
        return len(os.sched_getaffinity(0)) if asked == "*" else int(asked)


class PerWorker(SpecModel):
    """How much backlog one worker handles, in the preflight's units."""

    bytes: Size | None = None
    files: Count | None = None
    offsets: Count | None = None
    versions: Count | None = None

    @model_validator(mode="after")
    def _says_something(self) -> PerWorker:
        if not self.amounts:
            raise problem("missing-key", "names no unit", do="add one of bytes, files, offsets, versions")
        return self

    @property
    def amounts(self) -> dict[str, int]:
        """Map each given unit to the amount that one worker handles."""
        counted = {"files": self.files, "offsets": self.offsets, "versions": self.versions}
        counted["bytes"] = None if self.bytes is None else in_bytes(self.bytes)
        return {unit: amount for unit, amount in counted.items() if amount is not None}


class Sizing(SpecModel):
    """The number of workers by the preflight's backlog, within bounds.

    ``within``: as many as earlier runs show to be needed; until there are enough of them, ``each`` decides.
    """

    min: Number = 1
    max: Number
    each: PerWorker | None = None
    within: PositiveDuration | None = None

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> Sizing:
        if self.max < self.min:
            raise problem("contradiction", f"is less than min ({self.min})", "max", do="swap them")
        if self.each is None and self.within is None:
            raise problem(
                "missing-key", "does not say what decides between min and max", do="add `each:` or `within:`"
            )
        return self


Workers = Annotated[
    Annotated[Number, Tag("Number")] | Annotated[Sizing, Tag("Sizing")],
    Discriminator(lambda value: "Sizing" if isinstance(value, dict) else "Number"),
]
"""A fixed number, or by the backlog."""


class SizedCluster(Cluster):
    """A cluster for one run, with as many workers as the run needs; each has one executor."""

    workers: Workers
    worker_cores: Number = 1
    worker_memory: Memory = "1g"

    @property
    def worker_bytes(self) -> int:
        """Return the memory of one worker's executor."""
        return in_bytes(self.worker_memory)


class RunCluster(SizedCluster):
    """One that is started for a run, with the driver on this machine.

    ``ttl``: when it ends by itself.
    """

    ttl: PositiveDuration = Duration.parse("3 hours")


class StandaloneCluster(RunCluster):
    """A Spark master and workers on this machine for one run.

    ``host``: the address of this machine that they listen on.
    """

    kind: Literal["standalone"]
    host: Host = "127.0.0.1"

    @model_validator(mode="after")
    def _host_is_one_address(self) -> StandaloneCluster:
        """Drivers and workers connect to it, so it cannot stand for all addresses of a machine."""
        if set(self.host) <= {"0", "."}:
            raise problem("wrong-value", "is no address to connect to", "host",
                          do="write one address of this machine: hostname -I")  # fmt: skip
        return self


class ConnectionCluster(Cluster):
    """An existing master, named by an Airflow connection."""

    kind: Literal["connection"]
    connection: Line


def in_bytes(size: str) -> int:
    """Convert an amount in Spark's notation to bytes."""
    return int(size[:-1]) * _BYTES[size[-1]]
