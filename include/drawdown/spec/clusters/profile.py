"""Selects the model of a cluster profile by its `kind`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Tag

from drawdown.spec.clusters.cluster import Cluster, ConnectionCluster, LocalCluster, StandaloneCluster
from drawdown.spec.clusters.commands import CommandsCluster
from drawdown.spec.clusters.remote import DataprocCluster, EmrCluster, EmrServerlessCluster, KubernetesCluster

_KINDS: dict[str, type[Cluster]] = {
    "local": LocalCluster,
    "standalone": StandaloneCluster,
    "commands": CommandsCluster,
    "connection": ConnectionCluster,
    "kubernetes": KubernetesCluster,
    "emr-serverless": EmrServerlessCluster,
    "emr": EmrCluster,
    "dataproc": DataprocCluster,
}


def _model_of(value: Any) -> str | None:
    """Return the model of a profile; without `kind:` it is local."""
    if not isinstance(value, dict):
        return LocalCluster.__name__
    model = _KINDS.get(str(value.get("kind", "local")))
    return None if model is None else model.__name__


# Pydantic puts the tag among the keys of an error's place; no key looks like the name of a class.
Profile = Annotated[
    Annotated[LocalCluster, Tag("LocalCluster")]
    | Annotated[StandaloneCluster, Tag("StandaloneCluster")]
    | Annotated[CommandsCluster, Tag("CommandsCluster")]
    | Annotated[ConnectionCluster, Tag("ConnectionCluster")]
    | Annotated[KubernetesCluster, Tag("KubernetesCluster")]
    | Annotated[EmrServerlessCluster, Tag("EmrServerlessCluster")]
    | Annotated[EmrCluster, Tag("EmrCluster")]
    | Annotated[DataprocCluster, Tag("DataprocCluster")],
    Discriminator(
        _model_of,
        custom_error_type="wrong-value",
        custom_error_message="unknown kind",
        custom_error_context={
            "what": f"must be one of {', '.join(map(repr, _KINDS))}",
            "at": ("kind",),
            "do": "write one of them",
        },
    ),
]
"""One entry of `clusters:`."""
