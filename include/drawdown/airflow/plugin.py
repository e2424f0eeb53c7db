"""The Airflow plugin: the page of run records, the timetable of replays.

plugins/drawdown_plugin.py brings it in.
"""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin

from drawdown.airflow.links import PAGE_PREFIX
from drawdown.airflow.replay_timetable import ReplayTimetable


class _Page:
    """Imported when the web server asks: schedulers and tasks load plugins too and need no page."""

    def __get__(self, instance: object, owner: type) -> list[dict[str, Any]]:
        from drawdown.airflow.pages.run_record import app

        return [{"app": app, "url_prefix": PAGE_PREFIX, "name": "Drawdown"}]


class DrawdownPlugin(AirflowPlugin):
    """The button that leads to the page is drawdown.airflow.links.RunRecordLink, on the operators."""

    name = "drawdown"
    fastapi_apps: Any = _Page()
    timetables: Any = (ReplayTimetable,)
