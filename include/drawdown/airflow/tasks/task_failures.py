"""How a task fails: its log's last ERROR says what happened, where and what to do, without a stack trace.

Airflow writes the stack trace of every exception that ends a task, except SystemExit. So `plainly` logs the
sentence and ends the task with SystemExit. The retry policy then decides whether a retry could help.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.sdk import BaseOperator, RetryDecision, RetryPolicy
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from drawdown.errors import DrawdownError

if TYPE_CHECKING:
    from airflow.sdk import Context

_Operator = TypeVar("_Operator", bound=BaseOperator)
_Method = Callable[..., Any]


class WorthRetrying(AirflowException):
    """A failure that may not happen in the next try."""


class TaskFailed(SystemExit):
    """Ends a task as failed, after its log has said why; callbacks find the sentence in it.

    Attributes:
        permanent: whether the next try would fail in the same way.
    """

    def __init__(self, sentence: str, *, permanent: bool) -> None:
        super().__init__(1)
        self.sentence = sentence
        self.permanent = permanent

    def __str__(self) -> str:
        return self.sentence


class NoRetryOfPermanent(RetryPolicy):
    """Does not retry a permanent `TaskFailed`; for everything else the task's `retries` apply."""

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Context | None = None
    ) -> RetryDecision:
        permanent = isinstance(exception, TaskFailed) and exception.permanent
        return RetryDecision.fail() if permanent else RetryDecision.default()


def plainly(method: _Method) -> _Method:
    """Decorate a method of an operator that Airflow calls, so that it ends the task with `TaskFailed`.

    It does so for AirflowFailException (permanent), WorthRetrying and every DrawdownError; other exceptions,
    skips and reschedules pass unchanged.
    """

    @functools.wraps(method)
    def failing_plainly(operator: _Operator, *about: Any, **more: Any) -> Any:
        try:
            return method(operator, *about, **more)
        except (AirflowFailException, WorthRetrying) as error:
            sentence, permanent = str(error), isinstance(error, AirflowFailException)
        except DrawdownError as error:
            sentence, permanent = str(error), not error.transient
        operator.log.error("%s", sentence)
        raise TaskFailed(sentence, permanent=permanent)

    return failing_plainly
