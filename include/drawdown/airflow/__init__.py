"""Pipelines as DAGs: the factory, its operators, the page of a run's records. Knows no engine."""

from drawdown.versions import check_versions

# Before the first import of Airflow, so that another Airflow is named and not a module that it lacks.
check_versions()
