"""Spark's own check of a streaming plan, for whatever the other rules do not refuse with a better text."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.errors import AnalysisException

from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.checks.subject import Subject
from drawdown.spark.gateway import jvm_of
from drawdown.spark.sentences import spark_sentence


def unsupported(subject: Subject) -> Iterator[PlanVerdict]:
    """Yield at most one refusal, ``transform.unsupported``, in Spark's words."""
    jvm = jvm_of(subject.session)
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
