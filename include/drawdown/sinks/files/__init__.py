"""File formats as a sink: Spark's own file sink with its log."""
