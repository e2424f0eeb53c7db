"""Every folder of include/pipelines as a DAG."""

from pathlib import Path

from drawdown.airflow.factory import build_dags

globals().update(build_dags(Path(__file__).absolute().parents[1]))
