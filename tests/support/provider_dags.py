"""A program: parse a project with Airflow's optional providers, and say what its tasks are and would ask for.

    python -m tests.support.provider_dags PROVIDERS PROJECT

Runs apart from the tests, because the providers are in a folder of their own. Standard output: one JSON
object.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

CLOUDS = ("kubernetes", "emr_serverless", "emr", "dataproc")


def main(providers: str, root: Path) -> dict[str, Any]:
    sys.path.append(providers)
    from airflow.dag_processing.dagbag import DagBag
    from airflow.serialization.serialized_objects import DagSerialization

    bag = DagBag(dag_folder=root / "dags", bundle_path=root / "dags")
    found: dict[str, Any] = {"import_errors": {str(k): v for k, v in bag.import_errors.items()}, "dags": {}}
    for dag_id in CLOUDS:
        for each in (dag_id, f"{dag_id}__replay"):
            # As Airflow keeps it in its database.
            DagSerialization.to_dict(bag.dags[each])
            found["dags"][each] = {task.task_id: described(task) for task in bag.dags[each].tasks}
    found["refused"] = {dag_id: refusals(bag.dags[dag_id]) for dag_id in CLOUDS}
    found["asked"] = {
        each: asked(bag.dags[each]) for dag_id in CLOUDS for each in (dag_id, f"{dag_id}__replay")
    }
    found["rejected"] = rejected(bag.dags["emr"], bag.dags["dataproc__replay"])
    return found


def described(task: Any) -> dict[str, Any]:
    classes = [f"{each.__module__}.{each.__name__}" for each in type(task).__mro__]
    return {
        "classes": [name for name in classes if name.startswith("airflow.providers.")],
        "downstream": sorted(task.downstream_task_ids),
        "setup": task.is_setup,
        "teardown": task.is_teardown,
        "pool": task.pool,
        "templates": list(task.template_fields),
    }


def refusals(dag: Any) -> list[str]:
    """What each operator of the provider says to an argument that it does not have."""
    said = []
    for task in dag.tasks:
        if hasattr(task, "work"):
            try:
                type(task)(work=task.work, task_id="again", nosuch=1, **needed(task))
            except TypeError as error:
                said.append(str(error))
    return said


def needed(task: Any) -> dict[str, Any]:
    names = ("profile", "application_id", "execution_role_arn", "job_driver", "job_flow_id", "cluster_name",
             "cluster_config", "region", "job")  # fmt: skip
    return {name: getattr(task, name) for name in names if getattr(task, name, None) is not None}


def context(task: Any) -> dict[str, Any]:
    """What a task of Airflow is given, as far as these look at it."""
    pushed: dict[str, Any] = {}
    ti = SimpleNamespace(
        dag_id=task.dag_id,
        run_id="manual__2024-05-01",
        task_id=task.task_id,
        try_number=1,
        map_index=-1,
        xcom_push=pushed.__setitem__,
        xcom_pull=lambda **_: _size(3),
    )
    day = [datetime(2024, 5, day, tzinfo=UTC) for day in (1, 2)]
    run = SimpleNamespace(logical_date=day[0], run_type="manual")
    interval = {"data_interval_start": day[0], "data_interval_end": day[1]}
    return {"ti": ti, "dag_run": run, "params": {}, **interval}


def _size(workers: int) -> dict[str, Any]:
    """What the task that starts the cluster leaves for the one behind it."""
    return {"workers": workers, "why": "5 files wait, and so on"}


def asked(dag: Any) -> dict[str, Any]:
    """The requests for a run of the DAG, held against what the service's own library takes."""
    from drawdown.launch.remote_requests import dataproc, emr, emr_serverless
    from drawdown.launch.remote_requests.kubernetes import spark_application

    job = dag.get_task("drain" if dag.has_task("drain") else "replay")
    kind = dag.dag_id.removesuffix("__replay")
    if kind == "kubernetes":
        order = job.work.order(context(job))
        return {"application": created(spark_application(order, job.profile), order.run_name)}
    if kind == "emr_serverless":
        order = job.work.order(context(job))
        request = {
            "applicationId": job.application_id,
            "executionRoleArn": job.execution_role_arn,
            "clientToken": job.client_request_token,
            "name": order.name,
            "jobDriver": emr_serverless.job_driver(order),
            "configurationOverrides": job.configuration_overrides,
        }
        return {"request": request, "errors": of_aws("emr-serverless", "StartJobRun", request)}
    up, down = dag.get_task("cluster_up"), dag.get_task("cluster_down")
    # What waits at a drain is counted where its storage is: not here.
    size = up.work.order(context(up), None if job.task_id == "replay" else _size(2))
    order = job.work.order(context(job), _size(3))
    if kind == "emr":
        flow, step = emr.job_flow(size, up.profile), emr.step(order)
        steps = {"JobFlowId": "j-1", "Steps": [step]}
        errors = of_aws("emr", "RunJobFlow", flow) + of_aws("emr", "AddJobFlowSteps", steps)
        return {"flow": flow, "step": step, "errors": errors, "of": str(job.job_flow_id)}
    from google.cloud.dataproc_v1 import ClusterConfig, Job

    config, run = dataproc.cluster_config(size, up.profile), dataproc.job(order, order.name)
    ClusterConfig(config)
    Job(run)
    assert down.region == up.region
    return {"config": config, "job": run, "name": order.name}


def created(application: dict[str, Any], name: str) -> dict[str, Any]:
    """What the provider would send to Kubernetes."""
    from airflow.providers.cncf.kubernetes.operators.custom_object_launcher import CustomObjectLauncher

    namespace = application["metadata"]["namespace"]
    body: dict[str, Any] = CustomObjectLauncher(name, namespace, None, None, {"spark": application}).body
    return body


def of_aws(service: str, operation: str, request: dict[str, Any]) -> str:
    """What botocore finds in a request before it would send it."""
    from botocore.session import Session
    from botocore.validate import ParamValidator

    model = Session().get_service_model(service).operation_model(operation)
    return str(ParamValidator().validate(request, model.input_shape).generate_report())


def rejected(emr_dag: Any, dataproc_dag: Any) -> dict[str, str]:
    """A word that the service does not know, in the profile, through `execute` itself: nothing is sent."""
    from airflow.sdk.exceptions import AirflowFailException

    said = {}
    flow, cluster = emr_dag.get_task("cluster_up"), dataproc_dag.get_task("cluster_up")
    flow.profile.job_flow["LogUrl"] = "s3://logs"
    cluster.profile.cluster_config["gce_cluster_confg"] = {}
    for name, task in (("emr", flow), ("dataproc", cluster)):
        try:
            task.execute(context(task))
        except AirflowFailException as error:
            said[name] = str(error)
    return said


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
