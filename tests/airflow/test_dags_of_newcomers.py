"""What Airflow's DAG processor makes of a folder that collides with a pipeline that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import structlog
from airflow.dag_processing.processor import DagFileParseRequest, _parse_file

from drawdown.errors import SpecError
from drawdown.plan.preflight import preflight
from drawdown.spec import load_pipeline, load_project
from drawdown.workspace import Workspace
from tests.support.dag_project import DagProject
from tests.support.newcomers import note_run


@pytest.fixture
def project(tmp_path: Path) -> DagProject:
    return DagProject(tmp_path / "project")


def processed(project: DagProject) -> dict[str, dict[str, Any]]:
    """The DAGs by id, as the process that the DAG processor starts for the file hands them to it."""
    request = DagFileParseRequest(
        file=str(project.root / "dags" / "drawdown.py"), bundle_path=project.root / "dags", bundle_name="dags"
    )
    result = _parse_file(request, structlog.get_logger())
    assert result is not None
    assert result.import_errors == {}
    return {dag.dag_id: dag.data["dag"] for dag in result.serialized_dags}


def tasks(dag: dict[str, Any]) -> list[str]:
    return [task["__var"]["task_id"] for task in dag["tasks"]]


def ran(project: DagProject, *names: str) -> None:
    for name in names:
        note_run(load_project(project.root), name)


@pytest.mark.capability("SAFE-05")
def test_a_sink_inside_anothers_breaks_the_newcomers_dag_alone(project: DagProject) -> None:
    project.pipeline("quar", 'schedule: "@hourly"')
    before = processed(project)["quar"]
    ran(project, "quar")
    spec = project.pipeline("a_newcomer") / "pipeline.yaml"
    spec.write_text(spec.read_text().replace("tables/a_newcomer", "tables/quar/x"))
    found = processed(project)
    assert found["quar"] == before, "nothing of the DAG that runs has changed"
    assert tasks(found["a_newcomer"]) == ["broken"]
    assert "spec.shared-sink" in found["a_newcomer"]["doc_md"]
    assert "quar ran first" in found["a_newcomer"]["doc_md"]


@pytest.mark.capability("SAFE-05")
@pytest.mark.parametrize("own", ['schedule: "@daily"', 'schedule: "@hourly"\ncluster: big', "source: rate"])
def test_a_member_that_differs_leaves_the_group_as_it_ran(tmp_path: Path, own: str) -> None:
    project = DagProject(tmp_path / "project", more="clusters: {local: {}, big: {driver_memory: 2g}}")
    for name in ("payments", "refunds"):
        project.pipeline(name, 'group: fin\nschedule: "@hourly"')
    before = processed(project)["fin"]
    ran(project, "payments", "refunds")
    spec = project.pipeline("a_newcomer", f"group: fin\n{own}") / "pipeline.yaml"
    if own.startswith("source"):
        text = spec.read_text().replace(own, "")
        start, end = text.index("    format: json"), text.index("transform:")
        spec.write_text(f"{text[:start]}    format: rate\n{text[end:]}")
    found = processed(project)
    assert found["fin"] == before
    assert tasks(found["a_newcomer"]) == ["broken"]


@pytest.mark.capability("SAFE-05")
def test_a_pipeline_with_the_name_of_a_group_takes_its_place_from_nobody(project: DagProject) -> None:
    project.pipeline("payments", "group: fin")
    before = processed(project)["fin"]
    ran(project, "payments")
    project.pipeline("fin")
    found = processed(project)
    assert found["fin"] == before
    assert tasks(found["fin_"]) == ["broken"]


@pytest.mark.capability("SAFE-05")
@pytest.mark.parametrize(
    ("ran_first", "newcomer", "dag_id"),
    [
        ({"payments": "group: fin"}, {"fin": ""}, "fin"),
        ({"a__replay": ""}, {"a": "replay: {interval: 6 hours}"}, "a__replay"),
    ],
)
def test_tasks_that_run_are_those_of_the_dag_that_ran(
    project: DagProject,
    monkeypatch: pytest.MonkeyPatch,
    ran_first: dict[str, str],
    newcomer: dict[str, str],
    dag_id: str,
) -> None:
    """A task parses its own DAG alone, without a look at the other folders where that is enough."""
    for name, more in ran_first.items():
        project.pipeline(name, more)
        ran(project, name)
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", dag_id)
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "drain")
    before = processed(project)[dag_id]
    for name, more in newcomer.items():
        spec = project.pipeline(name, more) / "pipeline.yaml"
        if more:
            spec.write_text(spec.read_text().replace("sink: {", "sink: {time_column: at, "))
    assert processed(project)[dag_id] == before


@pytest.mark.capability("SAFE-05")
def test_a_run_of_the_newcomer_that_waits_already_is_refused_by_its_preflight(
    project: DagProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.pipeline("quar")
    ran(project, "quar")
    spec = project.pipeline("newcomer") / "pipeline.yaml"
    spec.write_text(spec.read_text().replace("tables/newcomer", "tables/quar"))
    loaded = load_project(project.root)
    with Workspace.open(loaded) as workspace:
        found = preflight(workspace, load_pipeline(loaded, "newcomer"))
    assert isinstance(found.error, SpecError)
    assert found.error.id == "spec.shared-sink"

    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "newcomer")
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "broken")
    assert tasks(processed(project)["newcomer"]) == ["broken"], "its only task is found when it runs"
