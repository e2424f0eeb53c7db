"""Whether lineage events are sent, and to where: by project.yaml, the environment, Airflow's provider."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from drawdown.spec import Project

DEFAULT_NAMESPACE = "drawdown"
_FILE = "openlineage.yml"
_SECONDS = 5.0
"""Longest wait for one answer of a server. Only a thread waits: no run does."""


@dataclass(frozen=True)
class Destination:
    """Where events go.

    Attributes:
        config: of OpenLineage's client; without a transport, the client takes that of the environment.
        namespace: of the jobs.
        spool: the folder where events wait until they are delivered.
        shown: where they go, for people.
    """

    config: Mapping[str, Any] = field(repr=False)
    namespace: str
    spool: Path
    shown: str


def destination(project: Project, environment: Mapping[str, str]) -> Destination | None:
    """Return where the events of a project go; None when nothing is configured: the usual case."""
    if environment.get("OPENLINEAGE_DISABLED", "").strip().lower() in ("true", "1", "t"):
        return None
    found = _of_project(project) or _of_environment(project, environment) or _of_airflow(project)
    if found is None:
        return None
    config, shown = found
    theirs = config.pop("namespace", None)
    asked = project.lineage.namespace or theirs or environment.get("OPENLINEAGE_NAMESPACE")
    namespace = str(asked or DEFAULT_NAMESPACE)
    return Destination(config, namespace, project.state_dir / "lineage", shown)


def _of_project(project: Project) -> tuple[dict[str, Any], str] | None:
    asked = project.lineage
    if asked.url:
        transport: dict[str, Any] = {
            "type": "http",
            "url": asked.url,
            "endpoint": asked.endpoint,
            "timeout": _SECONDS,
            # What fails is kept and sent with the next run.
            "retry": {"total": 0, "status_forcelist": []},
        }
        if asked.api_key:
            transport["auth"] = {"type": "api_key", "apiKey": asked.api_key.get_secret_value()}
        return {"transport": transport}, asked.url
    if asked.file:
        path = str(project.state / asked.file)
        return {"transport": {"type": "file", "log_file_path": path, "append": True}}, path
    return None


def _of_environment(project: Project, environment: Mapping[str, str]) -> tuple[dict[str, Any], str] | None:
    if url := environment.get("OPENLINEAGE_URL"):
        return {}, url
    if environment.get("OPENLINEAGE_CONFIG") or any(
        n.startswith("OPENLINEAGE__TRANSPORT") for n in environment
    ):
        return {}, "the transport of the environment"
    home = environment.get("HOME", "")
    for path in (project.root / _FILE, Path.cwd() / _FILE, Path(home or "/nowhere") / ".openlineage" / _FILE):
        if path.is_file():
            content = yaml.safe_load(path.read_text())
            if isinstance(content, dict) and content.get("transport"):
                return content, f"the transport of {path}"
    return None


def _of_airflow(project: Project) -> tuple[dict[str, Any], str] | None:
    if project.airflows_lineage is None:
        return None
    return json.loads(project.airflows_lineage.get_secret_value()), "the transport of Airflow's provider"
