"""Judges `queries:` of quality.yaml: SQL over the slice that returns the unexpected rows."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import DataFrame

from drawdown.quality.gx_results import MAX_SAMPLES
from drawdown.quality.json_values import plain
from drawdown.spark.confined_query import confined_query
from drawdown.spec import Pipeline
from drawdown.spec.quality import SLICE, SliceQuery
from drawdown.spec.samples import SampleGate


def judge_queries(slice: DataFrame, pipeline: Pipeline) -> list[dict[str, Any]]:
    """Return one entry per query, as :class:`~drawdown.quality.outcome.AuditOutcome` describes.

    A query that passes costs one Spark job; a failed one costs a second, for at most three rows.
    """
    queries, gate = pipeline.quality.queries, pipeline.sample_gate
    if not queries:
        return []
    session, tables, limits = slice.sparkSession, pipeline.query_tables, pipeline.sql_limits
    slice.createOrReplaceTempView(SLICE)
    try:
        return [
            _entry(each, confined_query(session, each.unexpected, tables, limits), gate) for each in queries
        ]
    finally:
        session.catalog.dropTempView(SLICE)


def _entry(query: SliceQuery, unexpected: DataFrame, gate: SampleGate) -> dict[str, Any]:
    count = unexpected.count()
    rows = unexpected.limit(MAX_SAMPLES).collect() if count else []
    shown = [gate.row(plain(row), _named(query.unexpected)) for row in rows]
    return {
        "name": query.name,
        "type": "query",
        "kwargs": {"unexpected": query.unexpected},
        "severity": query.severity,
        "success": count == 0,
        "observed": None,
        "unexpected_count": count,
        "unexpected_percent": None,
        "samples": [row for row in shown if row],
        "exception": None,
    }


def _named(sql: str) -> set[str]:
    """Return the identifiers in the query: they include the judged columns, but none that only `*`
    selects."""
    without_texts = re.sub(r"'(?:[^'\\\\]|\\\\.)*'", " ", sql)
    return {*re.findall(r"\w+", without_texts), *re.findall(r"`([^`]+)`", without_texts)}
