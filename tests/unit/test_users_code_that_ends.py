"""Code of a pipeline that ends its process, or tries to: an error of that pipeline, with the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from drawdown.engine.listener import listener_of
from drawdown.engine.sinks.function import ForeachBatchSink
from drawdown.engine.sources.python import data_source
from drawdown.engine.transforms import run_transform
from drawdown.errors import TransformError
from tests.support.workspace import Workspace

ENDS = ["import sys; sys.exit(0)", "exit()", "raise KeyboardInterrupt", "raise GeneratorExit"]
SPEC = """
sources:
  events: {format: json, path: landing/events, schema: "id INT"}
  ticks: {format: python, reader: reader.py, schema: "id INT"}
transform: transform.py
sink: {format: foreach_batch, function: sink.py, mode: append}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "project")


def pipeline(workspace: Workspace, **files: str) -> Any:
    kept = {"transform_py": "def transform(s): return s", "sink_py": "def write(b, t): ...", "reader_py": ""}
    return workspace.pipeline("ends", SPEC, **{**kept, **files})


@pytest.mark.parametrize("code", ENDS)
def test_a_transform_that_ends_when_it_is_loaded_or_called(workspace: Workspace, code: str) -> None:
    for text in (f"\n{code}", f"def transform(sources):\n    {code}"):
        with pytest.raises(TransformError, match=r"transform\.raised") as caught:
            run_transform(cast("Any", None), pipeline(workspace, transform_py=text), {})
        assert caught.value.where.endswith("transform.py:2")


@pytest.mark.parametrize("code", ENDS)
def test_a_sink_a_listener_and_a_reader(workspace: Workspace, code: str) -> None:
    found = pipeline(workspace, sink_py=code, listener_py=code, reader_py=code)
    with pytest.raises(TransformError, match=r"listener\.raised"):
        listener_of(found)
    with pytest.raises(TransformError, match=r"source\.reader"):
        data_source(found, "ticks")
    sink = ForeachBatchSink.__new__(ForeachBatchSink)
    sink._pipeline = found
    with pytest.raises(TransformError, match=r"sink\.raised"):
        _ = sink.code
