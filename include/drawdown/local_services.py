"""Where the services are that `make up` has started for a project: one file, written there and read here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

_FILE = ".drawdown/services.json"


def note_services(root: Path, services: Mapping[str, str]) -> None:
    """Says where they are, by the variables that project.yaml takes them from; none: they stopped."""
    path = root / _FILE
    if not services:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".tmp")
    aside.write_text(json.dumps(services, indent=2) + "\n", encoding="utf-8")
    aside.replace(path)


def with_local_services(root: Path, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment, and for variables that it leaves out the local services of the project."""
    try:
        noted = json.loads((root / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return environ
    if not isinstance(noted, dict):
        return environ
    given = {name: value for name, value in environ.items() if value}
    return {**environ, **{n: v for n, v in noted.items() if isinstance(v, str) and n not in given}}
