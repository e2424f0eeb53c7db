"""How a task of a DAG fails, and what of a job's output is in its log."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from airflow.sdk import BaseOperator, RetryAction
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from drawdown.airflow.tasks.job_output import JobOutput
from drawdown.airflow.tasks.task_failures import NoRetryOfPermanent, TaskFailed, WorthRetrying, plainly
from drawdown.application.log_lines import error_lines
from drawdown.errors import RefusedError, SourceError

REFUSED = RefusedError("slice.decided", "it was released", where="pipeline events", do="look at its runs")


class Raises(BaseOperator):
    """An operator that ends with an exception."""

    def __init__(self, *, cause: Exception, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cause = cause

    @plainly
    def carry_out(self) -> None:
        raise self.cause


@pytest.mark.parametrize(
    ("cause", "sentence", "then"),
    [
        (AirflowFailException("no slice"), "no slice", RetryAction.FAIL),
        (REFUSED, str(REFUSED), RetryAction.FAIL),
        (SourceError("source.missing", "gone"), "source.missing: gone", RetryAction.DEFAULT),
        (WorthRetrying("stopped"), "stopped", RetryAction.DEFAULT),
    ],
)
def test_a_failure_is_an_error_in_the_log_and_has_no_stack_trace(
    cause: Exception, sentence: str, then: RetryAction, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        Raises(task_id="raises", cause=cause).carry_out()
    assert isinstance(ended.value, TaskFailed)
    assert str(ended.value) == sentence, "what callbacks are given"
    logged = capsys.readouterr().out
    assert "[error" in logged
    assert sentence in logged
    assert "Traceback" not in logged
    assert NoRetryOfPermanent().evaluate(ended.value, 1, 3).action is then


def test_a_skip_and_what_is_not_ours_go_on_as_they_are() -> None:
    for cause in (AirflowSkipException("nothing new"), ValueError("a bug")):
        with pytest.raises(type(cause)):
            Raises(task_id="raises", cause=cause).carry_out()


def test_the_lines_of_a_job_have_their_levels_and_its_errors_are_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    output = JobOutput(lambda level, line: logging.getLogger("task").log(level, "%s", line))
    first = "events: slice.waits: this is a notice"
    spark = "2026-01-31 09:30:00 WARN TaskSetManager: Lost task 0.0"
    failed = RefusedError("audit.fail", "not published: 1 of 2\n- id: failed\n    sample: 2", do="decide")
    for line in (
        "WARNING: Using incubator modules: jdk.incubator.vector",
        first,
        spark,
        "ERROR of the user's own",
        *error_lines(failed, "events").splitlines(),
        *error_lines(REFUSED).splitlines(),
        "spark: stopping",
    ):
        output.say(line)
    output.end()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", first),
        ("WARNING", spark),
        ("INFO", "ERROR of the user's own"),
        ("INFO", "spark: stopping"),
    ]
    assert output.errors == [
        "events: audit.fail: not published: 1 of 2\n  - id: failed\n    sample: 2\n  do:    decide",
        str(REFUSED),
    ]
    assert output.last_lines.endswith("spark: stopping")
