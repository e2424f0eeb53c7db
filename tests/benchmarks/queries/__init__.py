"""The queries of the benchmarks: each file is a pipeline's transform.py, and what a hand-written job imports.

They read `events` (id BIGINT, k INT, at TIMESTAMP, v DOUBLE), whose watermark is an hour, and `names`
(k INT, name STRING), which does not change.
"""
