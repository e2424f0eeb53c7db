"""A program: what a task hands to its run when Airflow's OpenLineage provider is installed, as JSON.

    python -m tests.support.provider_lineage PROVIDERS PROJECT

Runs apart from the tests, because the providers are in a folder of their own.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from drawdown.credentials import AIRFLOWS_LINEAGE
from drawdown.spec import load_project


def main(providers: str, root: Path) -> dict[str, Any]:
    project = load_project(root)
    from drawdown.airflow.lineage_parent import _computed, lineage_parent
    from drawdown.airflow.logins import look_up

    without = lineage_parent(project, _context())
    import airflow.providers

    airflow.providers.__path__.append(f"{providers}/airflow/providers")
    sys.path.append(providers)
    from airflow.providers.openlineage.plugins import macros

    ti = _context()["ti"]
    login = look_up(project, [])[AIRFLOWS_LINEAGE]
    return {
        "without": without,
        "given": lineage_parent(project, _context()),
        "computed": _computed(_context()),
        "of_provider": [macros.lineage_parent_id(ti), macros.lineage_root_parent_id(ti)],
        "transport": json.loads(login.password.get_secret_value()),
        "shown": repr(login),
    }


def _context() -> Any:
    at = datetime(2024, 5, 1, tzinfo=UTC)
    dag_run = SimpleNamespace(
        logical_date=None, run_after=at, clear_number=0, conf={}, dag_id="sales", run_id="asset_triggered__1"
    )
    ti = SimpleNamespace(
        dag_id="sales", task_id="drain", try_number=2, map_index=-1, run_id=dag_run.run_id, dag_run=dag_run,
        task=None, get_template_context=lambda: {"dag_run": dag_run},
    )  # fmt: skip
    return {"ti": ti, "dag_run": dag_run}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
