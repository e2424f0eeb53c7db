"""Keeps a lease alive while a run works, by a heartbeat thread."""

from __future__ import annotations

import threading
from datetime import timedelta
from types import TracebackType

from drawdown.errors import DrawdownError, RefusedError
from drawdown.metastore.records import Lease
from drawdown.metastore.store import Metastore

_BEATS_PER_TTL = 3


class LeaseHeartbeat:
    """Renews a lease three times per time-to-live, until the block ends; then releases it.

    When the store cannot be reached for a moment, the next beat tries again. Writing is safe without it:
    every stage and publish checks the lease's epoch (Metastore.fenced).
    """

    def __init__(self, metastore: Metastore, lease: Lease, ttl: timedelta) -> None:
        self.lease = lease
        self._metastore = metastore
        self._ttl = ttl
        self._ended = threading.Event()
        self._lost: DrawdownError | None = None
        self._thread = threading.Thread(target=self._beat, name=f"lease-{lease.pipeline}", daemon=True)

    def __enter__(self) -> LeaseHeartbeat:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
        if self._lost is None:
            self._metastore.release(self.lease)

    def check(self) -> None:
        """Raise RefusedError if the lease was lost."""
        if self._lost is not None:
            raise self._lost

    def lost(self) -> RefusedError | None:
        """Ask the store whether another run has taken the lease; return the error that says so.

        Whatever else a run meets that was overtaken, such as files that its successor has removed, follows
        from that.
        """
        try:
            self._metastore.check_lease(self.lease)
        except RefusedError as lost:
            return lost
        except DrawdownError:
            return None  # the store does not answer
        return None

    def _beat(self) -> None:
        while not self._ended.wait(self._ttl.total_seconds() / _BEATS_PER_TTL):
            try:
                self.lease = self._metastore.renew(self.lease, self._ttl)
            except RefusedError as lost:
                self._lost = lost
                return
            except DrawdownError:
                continue
