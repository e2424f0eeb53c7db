"""Ids of runs in lineage events, and the run that started a run: a task of Airflow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from openlineage.client.facet_v2 import parent_run
from openlineage.client.uuid import generate_static_uuid

PARENT, ROOT = "lineage_parent", "lineage_root"
"""Keys in the origin of a run: the Airflow task that submitted it and its DAG run, as `ParentRun.text`."""

PARENT_VARIABLE, ROOT_VARIABLE = "OPENLINEAGE_PARENT_ID", "OPENLINEAGE_ROOT_PARENT_ID"
"""The variables by which OpenLineage's integrations name their parent to each other."""

_TIME_IN_ID = re.compile(r"(\d{8}T\d{6})(\d{3})-")


@dataclass(frozen=True)
class ParentRun:
    """A run of another job; its text is ``namespace/job/run id``, as Airflow's macro writes it."""

    namespace: str
    job: str
    run_id: str

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Return the run that a text names; None for another text."""
        rest, _, run_id = text.rpartition("/")
        namespace, _, job = rest.rpartition("/")
        whole = namespace and job and re.fullmatch(r"[0-9a-fA-F-]{36}", run_id)
        return cls(namespace, job, run_id) if whole else None


def event_run_id(run_id: str) -> str:
    """Return the id of a run in events: always the same, and sorted by time as the run's own id is."""
    found = _TIME_IN_ID.match(run_id)
    at = datetime(1970, 1, 1, tzinfo=UTC)
    if found:
        at = datetime.strptime(f"{found[1]}.{found[2]}", "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC)
    return str(generate_static_uuid(at, f"drawdown.{run_id}".encode()))


def parent_facet(
    origin: Mapping[str, Any], environment: Mapping[str, str]
) -> parent_run.ParentRunFacet | None:
    """Return what started a run, by its origin, else by the environment of this process; None: a person."""
    parent = ParentRun.of(str(origin.get(PARENT) or environment.get(PARENT_VARIABLE) or ""))
    root = ParentRun.of(str(origin.get(ROOT) or environment.get(ROOT_VARIABLE) or ""))
    if parent is None:
        return None
    return parent_run.ParentRunFacet(
        run=parent_run.Run(runId=parent.run_id),
        job=parent_run.Job(namespace=parent.namespace, name=parent.job),
        root=_root(root) if root is not None else None,
    )


def _root(run: ParentRun) -> parent_run.Root:
    return parent_run.Root(
        run=parent_run.RootRun(runId=run.run_id),
        job=parent_run.RootJob(namespace=run.namespace, name=run.job),
    )
