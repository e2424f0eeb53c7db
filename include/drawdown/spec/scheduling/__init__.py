"""When a pipeline runs, in which micro-batches, and how Airflow runs its tasks."""
