"""The JSON Schemas of the four files, for editors: ``python -m drawdown.spec.json_schema [folder]``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from pydantic.json_schema import GenerateJsonSchema

from drawdown.spec.case import CaseFile
from drawdown.spec.key_reference import describe
from drawdown.spec.pipeline import Pipeline
from drawdown.spec.project import ProjectFile
from drawdown.spec.quality import Quality
from drawdown.values.duration import Duration
from drawdown.values.model import SpecModel

FILES: dict[str, type[SpecModel]] = {
    "pipeline": Pipeline,
    "quality": Quality,
    "project": ProjectFile,
    "case": CaseFile,
}


class _AsWritten(GenerateJsonSchema):
    """Shows a default as it is written in YAML."""

    def encode_default(self, dft: Any) -> Any:
        if isinstance(dft, Duration):
            return dft.text
        if isinstance(dft, SecretStr):
            return dft.get_secret_value()
        return super().encode_default(dft)


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a file, with the sentences of ``keys/`` as descriptions."""
    schema = FILES[name].model_json_schema(by_alias=True, schema_generator=_AsWritten)
    describe(name, schema)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema | {"title": f"{name}.yaml"}


def schema_text(name: str) -> str:
    """Return the JSON Schema of pipeline.yaml, quality.yaml, project.yaml or case.yaml as a file holds it."""
    return json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n"


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
