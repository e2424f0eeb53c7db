"""Pipelines for tests of quality: loaded from real files, of which only the quality.yaml differs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from typing import Any

from drawdown.spec import Pipeline, load_pipeline, load_project

_FILES = {
    "include/project.yaml": "storage_root: storage\nmetastore: sqlite:///metastore.db\n",
    "include/pipelines/flights/flights.ddl": "flight INT, origin STRING\n",
    "include/pipelines/flights/transform.sql": "SELECT * FROM flights\n",
    "include/pipelines/flights/pipeline.yaml": """\
        sources:
          flights: {format: csv, path: landing/flights, schema: flights.ddl}
        transform: transform.sql
        sink: {format: delta, path: tables/flights, schema: flights.ddl, publish: audited}
        """,
}


def pipeline_with(quality_yaml: str) -> Pipeline:
    """The pipeline ``flights`` with this quality.yaml; its folder is gone when it is returned."""
    with TemporaryDirectory() as root:
        for path, text in {**_FILES, "include/pipelines/flights/quality.yaml": quality_yaml}.items():
            file = Path(root, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(text))
        return load_pipeline(load_project(Path(root)), "flights")


def finding(**changes: Any) -> dict[str, Any]:
    """An expectation that holds, as a verdict keeps it (quality/outcome.py)."""
    held: dict[str, Any] = {
        "name": "known_origin",
        "type": "expect_column_values_to_be_in_set",
        "kwargs": {"column": "origin", "value_set": ["EWR", "JFK"]},
        "severity": "fail",
        "success": True,
        "observed": None,
        "unexpected_count": None,
        "unexpected_percent": None,
        "samples": [],
        "exception": None,
    }
    return held | changes
