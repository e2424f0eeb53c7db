"""Drains pipelines in one Spark application; Airflow submits it."""

from drawdown.jobs import drain

drain()
