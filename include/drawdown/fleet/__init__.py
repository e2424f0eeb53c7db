"""All pipelines at once, from specs and records alone: how each stands, and which feeds which.

Nothing here lists a source or a table, or starts Spark.
"""
