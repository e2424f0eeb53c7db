"""The custom resource definition of the Spark operator, from its Go module."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import yaml

MODULE = "github.com/kubeflow/spark-operator/v2@v2.3.0"
DEFINITION = "config/crd/bases/sparkoperator.k8s.io_sparkapplications.yaml"


def problems(application: dict[str, Any]) -> list[str]:
    """Return what the definition does not allow, unknown keys included, which a real API drops silently."""
    done = subprocess.run(
        ["go", "mod", "download", "-json", MODULE], capture_output=True, text=True, check=True, cwd="/"
    )
    folder = Path(json.loads(done.stdout)["Dir"])
    versions = yaml.safe_load((folder / DEFINITION).read_text())["spec"]["versions"]
    [schema] = [each["schema"]["openAPIV3Schema"] for each in versions if each["name"] == "v1beta2"]
    strict = _strict(schema)
    # Of every object of the API, so the definition says nothing about it.
    strict["properties"]["metadata"] = {"type": "object"}
    found = jsonschema.Draft202012Validator(strict).iter_errors(application)
    return [f"{'.'.join(map(str, each.path))}: {each.message}" for each in found]


def _strict(schema: Any) -> Any:
    """OpenAPI's schema as JSON Schema, without room for keys that it does not name."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    made = {key: _strict(value) for key, value in schema.items()}
    closed = not schema.keys() & {"additionalProperties", "x-kubernetes-preserve-unknown-fields"}
    if closed and isinstance(schema.get("properties"), dict):
        made["additionalProperties"] = False
    return made
