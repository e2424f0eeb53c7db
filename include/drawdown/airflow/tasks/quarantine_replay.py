"""A run of a drain's DAG that replays quarantined rows: the parameter `quarantine` asks for it.

It is a drain whose first batch includes those rows, so every task of the DAG does its work as ever: cluster,
audit, publish with the asset event, and the request about a slice that is held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param

from drawdown.quarantine.request import SCHEMA, as_argument

if TYPE_CHECKING:
    from airflow.sdk import Context

PARAMETER = "quarantine"


def quarantine_parameter(pipelines: Sequence[str]) -> Param:
    """Return the parameter of a DAG: Airflow refuses a run whose request does not fit."""
    of_group = len(pipelines) > 1
    return Param(
        None,
        type=["null", "object"],
        title="Replay quarantined rows",
        # Airflow's dialog shows an empty value as {}: that is a drain, too.
        description="Leave it empty for a drain; the page Quarantine fills it in."
        ' `{"pipeline": NAME}` replays all open rows of a pipeline that pass now.',
        properties={
            "pipeline": {"enum": list(pipelines)},
            **SCHEMA,
            "why": {"type": "string", "description": "The reason, for the run record."},
        },
        dependentRequired={key: ["pipeline"] for key in (*SCHEMA, "why")} if of_group else {},
        additionalProperties=False,
    )


@dataclass(frozen=True)
class AskedReplay:
    """What a run asks for: the pipeline whose rows are replayed, and the job's options."""

    pipeline: str
    options: tuple[str, ...]


def asked_replay(context: Context, pipelines: Sequence[str]) -> AskedReplay | None:
    """Return the replay that the DAG run asks for; None for a drain."""
    asked: dict[str, Any] | None = context["params"].get(PARAMETER)
    if not asked:
        return None
    name = str(asked.get("pipeline") or pipelines[0])
    by = context["dag_run"].triggering_user_name
    about = {"why": asked.get("why", ""), **({"by": by} if by else {})}
    return AskedReplay(name, ("--quarantine", as_argument({**asked, **about, "pipeline": name})))
