"""Brings Drawdown's page of run records into Airflow's web server."""

from drawdown.airflow.plugin import DrawdownPlugin

__all__ = ["DrawdownPlugin"]
