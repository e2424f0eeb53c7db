"""A task that waits without a worker slot until it can do its work."""

from __future__ import annotations

from abc import abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.exceptions import AirflowFailException

from drawdown.airflow.tasks.task_failures import plainly
from drawdown.errors import DrawdownError

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow.sdk import Context

_FIRST_WAIT = timedelta(seconds=30)
_LONGEST_WAIT = timedelta(minutes=5)


class RescheduledOperator(BaseSensorOperator):
    """Tries again after 30 seconds, then less often, up to every five minutes, as one try with one log.

    It waits for transient errors to pass, such as a drain that holds the lease; other errors fail the task.

    Args:
        timeout: how long it waits in total before it fails.
    """

    waits_for: Collection[str] = ()
    """Ids of other errors to wait for, which end when somebody acts."""

    def __init__(self, *, project_root: str, timeout: timedelta, **kwargs: Any) -> None:
        super().__init__(
            mode="reschedule",
            poke_interval=_FIRST_WAIT,
            exponential_backoff=True,
            max_wait=_LONGEST_WAIT,
            timeout=timeout,
            **kwargs,
        )
        self.project_root = project_root

    @plainly
    def execute(self, context: Context) -> Any:
        return super().execute(context)

    @abstractmethod
    def carry_out(self, context: Context) -> dict[str, Any]:
        """Do all of the work or none of it, and return the task's XCom. Raises DrawdownError."""

    def poke(self, context: Context) -> bool | PokeReturnValue:
        try:
            return PokeReturnValue(True, self.carry_out(context))
        except DrawdownError as error:
            if error.transient or error.id in self.waits_for:
                self.log.info("waiting: %s", error)
                return False
            raise AirflowFailException(str(error)) from None
