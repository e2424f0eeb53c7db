"""Brings Drawdown's page of run records and the timetable of its replays into Airflow."""

from drawdown.airflow.plugin import DrawdownPlugin

__all__ = ["DrawdownPlugin"]
