"""A task that carries something out once nothing is in its way, and takes no worker's slot until then."""

from __future__ import annotations

from abc import abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.exceptions import AirflowFailException

from drawdown.errors import DrawdownError

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow.sdk import Context

_FIRST_WAIT = timedelta(seconds=30)
_LONGEST_WAIT = timedelta(minutes=5)


class RescheduledOperator(BaseSensorOperator):
    """Tries again after 30 seconds, and by and by every five minutes, as one try with one log.

    What is transient, such as a drain that holds the lease, is waited for; any other error fails the task.

    Args:
        timeout: how long it waits in all before it fails.
    """

    waits_for: Collection[str] = ()
    """Ids of errors that are waited for although they do not pass by themselves: somebody else ends them."""

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

    @abstractmethod
    def carry_out(self, context: Context) -> dict[str, Any]:
        """Do it, all or nothing; what it returns is the task's XCom. Raises DrawdownError."""

    def poke(self, context: Context) -> bool | PokeReturnValue:
        try:
            return PokeReturnValue(True, self.carry_out(context))
        except DrawdownError as error:
            if error.transient or error.id in self.waits_for:
                self.log.info("waiting: %s", error)
                return False
            raise AirflowFailException(str(error)) from None
