"""The Airflow plugin: the page of run records, the timetable of replays.

plugins/drawdown_plugin.py loads it.
"""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from drawdown.airflow.links import PAGE_PREFIX
from drawdown.airflow.replay_timetable import ReplayTimetable


class _Page:
    """Imports the page when the web server needs it: schedulers and tasks load plugins too, but no page."""

    def __get__(self, instance: object, owner: type) -> list[dict[str, Any]]:
        from drawdown.airflow.pages.run_record import app

        return [{"app": app, "url_prefix": PAGE_PREFIX, "name": "Drawdown"}]


class DrawdownPlugin(AirflowPlugin):
    """The operators' button drawdown.airflow.links.RunRecordLink leads to the page."""

    name = "drawdown"
    fastapi_apps: Any = _Page()
    timetables: Any = (ReplayTimetable,)
