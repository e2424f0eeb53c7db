"""Drains a rebuild of a pipeline and compares it with what is live; Airflow submits it."""

from drawdown.jobs import rebuild

rebuild()
