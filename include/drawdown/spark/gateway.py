"""The way from Python to Spark's classes in the JVM."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def jvm_of(session: SparkSession) -> Any:
    """The classes of a session's JVM; a running session of Spark Classic always has one."""
    return session._jvm
