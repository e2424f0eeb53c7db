"""Pipelines as DAGs: the factory, its operators, the page of a run's records. Knows no engine."""
