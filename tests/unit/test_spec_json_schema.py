"""The exported JSON Schemas are those of the models, and accept what the loader accepts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drawdown.spec.json_schema import FILES, export, schema_text

FOLDER = Path(__file__).parents[2] / "docs" / "schema"


@pytest.mark.parametrize("name", FILES)
def test_the_exported_schema_is_current(name: str) -> None:
    exported = (FOLDER / f"{name}.schema.json").read_text(encoding="utf-8")
    assert exported == schema_text(name), "run: python -m drawdown.spec.json_schema docs/schema"


def test_export_writes_every_file(tmp_path: Path) -> None:
    assert [path.name for path in export(tmp_path / "new")] == [f"{name}.schema.json" for name in FILES]


def test_editors_see_the_keys_of_the_yaml() -> None:
    source = json.loads(schema_text("pipeline"))["$defs"]["Source"]
    assert "schema" in source["properties"]
    assert "schema_file" not in source["properties"]
    assert source["additionalProperties"] is False
