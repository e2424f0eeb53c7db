"""The Airflow plugin: the pages, their places in Airflow's own, the timetable of replays.

Every component of Airflow imports it, so it also closes them to the drivers that run as the same user.
plugins/drawdown_plugin.py loads it.
"""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from drawdown.airflow.links import PAGE_PREFIX, page_root
from drawdown.airflow.replay_timetable import ReplayTimetable
from drawdown.processes.closed import close_to_others

# Airflow closes the supervisor of a task, and the task, by itself. The scheduler, the dag-processor, the
# triggerer and the api-server hold the same keys, and each loads its plugins when it starts.
close_to_others()


class _Pages:
    """Imports the pages when the web server needs them: schedulers and tasks load plugins, but no page."""

    def __get__(self, instance: object, owner: type) -> list[dict[str, Any]]:
        from drawdown.airflow.pages.app import app

        return [{"app": app, "url_prefix": PAGE_PREFIX, "name": "Drawdown"}]


_VIEWS = [
    {"name": "Fleet", "href": "/fleet", "destination": "nav", "url_route": "drawdown-fleet"},
    {
        "name": "Pipeline",
        "href": "/dags/{DAG_ID}",
        "destination": "dag",
        "url_route": "drawdown-pipeline",
    },
    {
        "name": "Batches",
        "href": "/runs/{DAG_ID}/{RUN_ID}",
        "destination": "dag_run",
        "url_route": "drawdown-run",
    },
]
"""Pages inside Airflow's own: an item of its navigation, tabs of a DAG and of a DAG run."""


class DrawdownPlugin(AirflowPlugin):
    """The operators' button drawdown.airflow.links.RunRecordLink leads to a page, too."""

    name = "drawdown"
    fastapi_apps: Any = _Pages()
    external_views: Any = tuple({**view, "href": f"{page_root()}{view['href']}"} for view in _VIEWS)
    timetables: Any = (ReplayTimetable,)
