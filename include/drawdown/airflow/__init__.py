"""Pipelines as DAGs: the factory, its operators, the page of a run's records. Imports no Spark."""

from drawdown.versions import check_versions

# Before the first import of Airflow, so that an error names an unsupported version, not a missing module.
check_versions()
