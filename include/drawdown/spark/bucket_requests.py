"""What Spark's driver, and executors in its process, have sent to S3 (jvm/java/RequestCounts.java)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from drawdown.spark.gateway import is_cut_off
from drawdown.spark.object_storage import counts_requests


def sent_by_spark(session: SparkSession) -> Mapping[str, int]:
    """Return requests by kind since its JVM began; empty where nothing counts them, or the JVM is gone."""
    try:
        return _sent(session)
    except Exception as cause:
        if is_cut_off(cause):
            return {}
        raise


def _sent(session: SparkSession) -> Mapping[str, int]:
    if not counts_requests(session):
        return {}
    text = str(session.sparkContext._jvm.drawdown.RequestCounts.counted())  # type: ignore[union-attr]
    return {kind: int(number) for kind, number in (part.split("=") for part in text.split())}
