"""Code of a pipeline that ends its process, or tries to: an error of that pipeline, with the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from drawdown.drain.listener import listener_of
from drawdown.errors import TransformError
from drawdown.query.transforms import run_transform
from drawdown.sinks.code.stage import ForeachBatchSink
from drawdown.sources.python.reader import data_source
from drawdown.spark.user_code import load_module
from tests.support.sandbox import Sandbox

ENDS = [
    "import sys; sys.exit(0)",
    "exit()",
    "raise KeyboardInterrupt",
    "raise GeneratorExit",
    "import os; os._exit(0)",
]
SPEC = """
sources:
  events: {format: json, path: landing/events, schema: "id INT"}
  ticks: {format: python, reader: reader.py, schema: "id INT"}
transform: transform.py
sink: {format: foreach_batch, function: sink.py, mode: append}
"""


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path / "project")


def pipeline(sandbox: Sandbox, **files: str) -> Any:
    kept = {"transform_py": "def transform(s): return s", "sink_py": "def write(b, t): ...", "reader_py": ""}
    return sandbox.pipeline("ends", SPEC, **{**kept, **files})


@pytest.mark.parametrize("code", ENDS)
def test_a_transform_that_ends_when_it_is_loaded_or_called(sandbox: Sandbox, code: str) -> None:
    for text in (f"\n{code}", f"def transform(sources):\n    {code}"):
        with pytest.raises(TransformError, match=r"transform\.raised") as caught:
            run_transform(cast("Any", None), pipeline(sandbox, transform_py=text), {})
        assert caught.value.where.endswith("transform.py:2")


@pytest.mark.parametrize("code", ENDS)
def test_a_sink_a_listener_and_a_reader(sandbox: Sandbox, code: str) -> None:
    found = pipeline(sandbox, sink_py=code, listener_py=code, reader_py=code)
    with pytest.raises(TransformError, match=r"listener\.raised"):
        listener_of(found)
    with pytest.raises(TransformError, match=r"source\.reader"):
        data_source(found, "ticks")
    sink = ForeachBatchSink.__new__(ForeachBatchSink)
    sink._pipeline = found
    with pytest.raises(TransformError, match=r"sink\.raised"):
        _ = sink.code


def test_a_process_that_users_code_forks_ends_as_it_wants_to(tmp_path: Path) -> None:
    (tmp_path / "transform.py").write_text(
        "import multiprocessing\n"
        "child = multiprocessing.get_context('fork').Process(target=print)\n"
        "child.start()\n"
        "child.join(10)\n"
        "exit_code = child.exitcode\n"
    )
    assert load_module("forks", tmp_path / "transform.py").exit_code == 0
