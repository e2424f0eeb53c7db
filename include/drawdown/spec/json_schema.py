"""The JSON Schemas of the three files, for editors: ``python -m drawdown.spec.json_schema [folder]``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from drawdown.spec.pipeline import Pipeline
from drawdown.spec.project import ProjectFile
from drawdown.spec.quality import Quality
from drawdown.values.model import SpecModel

FILES: dict[str, type[SpecModel]] = {"pipeline": Pipeline, "quality": Quality, "project": ProjectFile}


def schema_text(name: str) -> str:
    """The JSON Schema (2020-12) of pipeline.yaml, quality.yaml or project.yaml."""
    schema = FILES[name].model_json_schema(by_alias=True)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema | {"title": f"{name}.yaml"}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def export(folder: Path) -> list[Path]:
    """Writes ``<name>.schema.json`` for each file and returns the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in FILES:
        path = folder / f"{name}.schema.json"
        path.write_text(schema_text(name), encoding="utf-8")
        paths.append(path)
    return paths


if __name__ == "__main__":
    for written in export(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/schema")):
        print(written)
