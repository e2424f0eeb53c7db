"""Spark's own check of a streaming plan; it refuses whatever no rule of ours has explained better."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.errors import AnalysisException

from drawdown.query.checks.subject import Subject
from drawdown.spark.sentences import spark_sentence
from drawdown.verdicts import PlanVerdict


def unsupported(subject: Subject) -> Iterator[PlanVerdict]:
    """At most one refusal, ``transform.unsupported``, in Spark's words."""
    jvm = subject.session._jvm
    assert jvm is not None
    mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, subject.mode.capitalize())()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    try:
        checker.checkForStreaming(subject.plan.java, mode)
    except AnalysisException as cause:
        yield PlanVerdict(
            "refused",
            "transform.unsupported",
            f"{subject.pipeline.name} cannot run as a stream in {subject.mode} mode: {spark_sentence(cause)}",
            do="see Spark's Structured Streaming guide on output modes; nothing was read or written",
        )
