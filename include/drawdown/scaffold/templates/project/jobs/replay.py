"""Replays one interval of a pipeline; Airflow submits it."""

from drawdown.jobs import replay

replay()
