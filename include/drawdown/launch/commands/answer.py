"""The answer of `up`: one JSON document with the master's address and what to bill."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from drawdown.errors import MachineError
from drawdown.spec.clusters.cluster import Host

Master = Annotated[str, StringConstraints(pattern=r"^spark://[^/@\s,:]+:[0-9]{1,5}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BilledMachines(_Strict):
    """The machines of the cluster: what `drawdown cost` counts for the executors."""

    cores: Annotated[int, Field(ge=0, le=1_000_000)]
    memory_gib: Annotated[float, Field(ge=0, le=10_000_000, allow_inf_nan=False)]


class UpAnswer(_Strict):
    """What `up` printed.

    Attributes:
        driver_host: the address at which the cluster reaches this machine; None: the one of the interface
            by which this machine reaches the master.
    """

    master: Master
    bill: BilledMachines | None = None
    driver_host: Host | None = None

    @classmethod
    def parse(cls, text: str) -> UpAnswer:
        """Read what `up` printed. Raises MachineError ``cluster.bad-answer``."""
        try:
            return cls.model_validate_json(text.strip(), strict=True)
        except ValidationError as cause:
            first = cause.errors()[0]
            at = ".".join(map(str, first["loc"]))
            what = f"{at}: {first['msg']}" if at else str(first["msg"])
        raise MachineError(
            "cluster.bad-answer",
            f"`up` ended well, but its standard output is not the answer that is needed ({what})",
            where="`up:` of the cluster in include/project.yaml",
            do='let it print one JSON document and nothing else: {"master": "spark://10.0.0.2:7077", "bill":'
            ' {"cores": 4, "memory_gib": 8}}; messages go to standard error',
        )

    @classmethod
    def of(cls, recorded: dict[str, Any]) -> UpAnswer:
        """Return the answer from its record."""
        return cls.model_validate(recorded)

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port of the master."""
        host, _, port = self.master.removeprefix("spark://").partition(":")
        return host, int(port)
