"""The DAGs, one module each: what their tasks are and in which order they run."""
