"""Drains a rebuild of a pipeline and compares it with the live output; Airflow submits it."""

from drawdown.jobs import rebuild

rebuild()
