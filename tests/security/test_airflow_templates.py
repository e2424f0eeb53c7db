"""No text of a spec, a request or a row is a template of Airflow's: `{{ conn.x.password }}` stays text."""

from __future__ import annotations

import ast
import contextlib
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import BaseOperator

import drawdown.airflow
from tests.support.dag_project import DagProject

pytestmark = pytest.mark.capability("SAFE-02")

OWN = {"StepOperator": ("job_flow_id",), "TerminateOperator": ("job_flow_id",)}
"""Filled by the task before: the id of a cluster."""
TEMPLATE = "{{ 1 / 0 }}"


def operators() -> set[type[BaseOperator]]:
    """Every class of a task that the library has, of all kinds of clusters."""
    for module in pkgutil.walk_packages(drawdown.airflow.__path__, "drawdown.airflow."):
        # The providers of some kinds of clusters are not installed here: `written` looks at those.
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(module.name)
    found, open_ = set(), [BaseOperator]
    while open_:
        for kind in open_.pop().__subclasses__():
            open_.append(kind)
            if kind.__module__.startswith("drawdown."):
                found.add(kind)
    return found


def written() -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """The classes that extend an operator of Airflow's, and the fields that they write for themselves."""
    for file in Path(drawdown.airflow.__path__[0]).rglob("*.py"):
        tree = ast.parse(file.read_text())
        own = {each.name for each in ast.walk(tree) if isinstance(each, ast.ClassDef)}
        for each in ast.walk(tree):
            if isinstance(each, ast.ClassDef) and any(_is_of_airflow(base, own) for base in each.bases):
                said = [
                    ast.literal_eval(line.value)
                    for line in each.body
                    if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "template_fields"
                ]
                yield each.name, said[0] if said else None


def _is_of_airflow(base: ast.expr, own: set[str]) -> bool:
    """Whether it is a stock operator: those without templates, and those of the library, aside."""
    name = ast.unparse(base)
    plain = ("BaseOperator", "BaseSensorOperator", "ProjectOperator", "PipelineOperator", "RecordOperator")
    return name.endswith("Operator") and name not in {*plain, "RescheduledOperator", "JobOperator", *own}


def test_every_stock_operator_is_extended_without_its_templates() -> None:
    found = dict(written())
    assert {
        "JobOperator",
        "ReasonedRequest",
        "AskOperator",
        "ClusterOperator",
        "StepOperator",
    } <= found.keys()
    assert found == {name: OWN.get(name, ()) for name in found}


def test_no_operator_has_a_template() -> None:
    found = {kind.__name__: tuple(kind.template_fields) for kind in operators()}
    assert {"DrainOperator", "ChooseOperator", "AskOperator", "RebuildOperator"} <= found.keys()
    assert {name: fields for name, fields in found.items() if fields}.items() <= OWN.items()


def test_texts_of_a_spec_reach_the_tasks_as_they_are(tmp_path: Path) -> None:
    project = DagProject(tmp_path / "project")
    quality = f"""
        expectations:
          - {{type: expect_column_values_to_not_be_null, kwargs: {{column: id}}, name: "{TEMPLATE}"}}
        """
    folder = project.pipeline("events", 'schedule: "5 * * * *"\nfreshness: 3 hours', TEMPLATE, quality)
    spec = folder / "pipeline.yaml"
    spec.write_text(spec.read_text().replace("Events as they come", f'"{TEMPLATE}"').replace("tester", "x"))
    spec.write_text(spec.read_text().replace(f"owner: {TEMPLATE}", f'owner: "{TEMPLATE}"'))
    bag = DagBag(dag_folder=project.root / "dags", bundle_path=project.root / "dags")
    assert bag.import_errors == {}
    assert bag.dags["events"].get_task("drain").owner == TEMPLATE
    for dag in bag.dags.values():
        for task in dag.tasks:
            before = {name: getattr(task, name) for name in type(task).template_fields}
            task.render_template_fields({})
            assert before == {name: getattr(task, name) for name in type(task).template_fields}
