"""A cluster profile whose clusters are started by programs of the project."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from drawdown.spec.clusters.cluster import RunCluster
from drawdown.values.duration import Duration, PositiveDuration
from drawdown.values.model import problem

_BY_THE_PROFILE = ("spark.executor.cores", "spark.executor.memory", "spark.dynamicAllocation.enabled")

Command = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_\-][A-Za-z0-9_.\-]*(/[A-Za-z0-9_\-][A-Za-z0-9_.\-]*)*$")
]
"""Path of a program below the project root; no part of it begins with a dot."""

Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]


class CommandsCluster(RunCluster):
    """A Spark master and workers that the programs ``up`` and ``down`` of the project start and end.

    Attributes:
        up, alive, down: paths of programs below the project root; docs/clusters.md says what each does.
        up_within, down_within: how long each may take.
        pass_environment: variables of this process's environment that the programs get.
        spark_secret: the variable that holds the secret that the cluster asks for (spark.authenticate).
        shared_disk: whether its workers see the folders of this machine under the same paths.
    """

    kind: Literal["commands"]
    up: Command
    alive: Command
    down: Command
    up_within: PositiveDuration = Duration.parse("10 minutes")
    down_within: PositiveDuration = Duration.parse("5 minutes")
    pass_environment: list[Variable] = Field(default_factory=list)
    spark_secret: Variable | None = None
    shared_disk: bool = False

    @model_validator(mode="after")
    def _executors_are_said_once(self) -> CommandsCluster:
        for key in _BY_THE_PROFILE:
            if key in self.conf:
                raise problem("no-effect", "worker_cores and worker_memory set this", "conf", key,
                              do="remove the key")  # fmt: skip
        return self
