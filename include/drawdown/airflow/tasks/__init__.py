"""The tasks of the DAGs: what each one does when it runs."""
