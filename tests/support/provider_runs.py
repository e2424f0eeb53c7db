"""A program: execute the real operators of a project's DAGs against services of this machine.

    python -m tests.support.provider_runs SERVICE PROVIDERS PROJECT [SERVER]

Runs apart from the tests, because the providers are in a folder of their own. SERVICE is a module
tests.support.cloud_SERVICE with `scenarios(dags)`, or `scenarios(dags, server)` with the address of a server.
Standard output: a JSON object, scenario -> what happened.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

RUN = "manual__2024-05-01"


def main(service: str, providers: str, root: Path, *server: str) -> dict[str, Any]:
    sys.path.append(providers)
    module = import_module(f"tests.support.cloud_{service}")
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(dag_folder=root / "dags", bundle_path=root / "dags")
    assert not bag.import_errors, bag.import_errors
    return dict(module.scenarios(bag.dags, *server))


def context(task: Any, pushed: dict[str, Any], run: str = RUN, tries: int = 1) -> Any:
    """What a task of Airflow is given, as far as these look at it."""
    day = [datetime(2024, 5, day, tzinfo=UTC) for day in (1, 2)]

    def pull(task_ids: Any = None, key: str = "", **_: Any) -> Any:
        return pushed.get(key)

    def push(key: str, value: Any, **_: Any) -> None:
        pushed[key] = value

    ti = SimpleNamespace(
        dag_id=task.dag_id, run_id=run, task_id=task.task_id, try_number=tries, map_index=-1,
        xcom_push=push, xcom_pull=pull, task=task, hostname="here", logical_date=day[0],
        get_template_context=lambda: {}, is_eager_start_from_trigger=False,
    )  # fmt: skip
    dag_run = SimpleNamespace(
        logical_date=day[0], run_type="manual", run_id=run, dag_id=task.dag_id, conf={}, run_after=day[0]
    )
    return {"ti": ti, "task_instance": ti, "task": task, "dag": task.dag, "dag_run": dag_run,
            "run_id": run, "params": {}, "data_interval_start": day[0],
            "data_interval_end": day[1], "logical_date": day[0]}  # fmt: skip


def outcome(work: Callable[[], Any]) -> str:
    """Return "success", or what a task would have failed with."""
    try:
        work()
    except Exception as error:  # noqa: BLE001  whatever a task fails with
        return f"{type(error).__name__}: {error}"
    return "success"


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *sys.argv[4:])), flush=True)
    # Clients of gRPC leave threads.
    os._exit(0)
