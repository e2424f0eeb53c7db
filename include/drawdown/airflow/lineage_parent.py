"""What Airflow says about lineage: the run of a task as the parent of its runs, and the provider's transport.

With apache-airflow-providers-openlineage both are the provider's own. Without it the ids are computed as it
does, so that they are right once it is installed.
"""

from __future__ import annotations

import logging
import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from drawdown.observe.lineage.settings import destination
from drawdown.spec import Project

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)


def lineage_parent(project: Project, context: Context) -> dict[str, str]:
    """Return the entries of a run's origin that name the task that starts it; empty when nothing is sent."""
    try:
        if providers_lineage() is None and destination(project, os.environ) is None:
            return {}
        return _by_provider(context) or _computed(context)
    except Exception as error:  # noqa: BLE001 - lineage must not fail a run
        log.warning("lineage: the task is not named as parent (%s)", type(error).__name__)
        return {}


def providers_lineage() -> dict[str, Any] | None:
    """Return the configuration of OpenLineage's client that Airflow's provider uses; None without one."""
    try:
        from airflow.providers.openlineage import conf
    except ImportError:
        return None
    if conf.is_disabled():
        return None
    config = {"transport": conf.transport()}
    if (path := conf.config_path(check_legacy_env_var=False)) and not config["transport"]:
        config = yaml.safe_load(Path(path).read_text())
    return {**config, "namespace": conf.namespace()} if config.get("transport") else None


def _by_provider(context: Context) -> dict[str, str] | None:
    try:
        from airflow.providers.openlineage.plugins import macros
    except ImportError:
        return None
    ti: Any = context["ti"]
    return _named(macros.lineage_parent_id(ti), macros.lineage_root_parent_id(ti))


def _computed(context: Context) -> dict[str, str]:
    from openlineage.client.uuid import generate_static_uuid

    ti, dag_run = context["ti"], context["dag_run"]
    namespace = os.environ.get("OPENLINEAGE_NAMESPACE", "default")
    at: datetime = dag_run.logical_date or dag_run.run_after

    def run_id(*parts: object) -> str:
        return str(generate_static_uuid(at, ".".join(map(str, (namespace, *parts))).encode()))

    task = run_id(ti.dag_id, ti.task_id, ti.try_number, ti.map_index)
    dag = run_id(ti.dag_id, getattr(dag_run, "clear_number", 0) or 0)
    return _named(f"{namespace}/{ti.dag_id}.{ti.task_id}/{task}", f"{namespace}/{ti.dag_id}/{dag}")


def _named(parent: str, root: str) -> dict[str, str]:
    # The keys of observe/lineage/parent.py, which imports a library that may be missing here.
    return {"lineage_parent": parent, "lineage_root": root}
