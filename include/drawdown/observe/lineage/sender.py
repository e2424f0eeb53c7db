"""Delivers events in a thread of its own, so that no run waits for a server.

A server that does not answer, or answers with an error, costs one line in the log: the events stay in the
spool, and the next run sends them. An event that the server calls wrong is dropped: it would block the rest.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import RunEvent
from openlineage.client.serde import Serde
from openlineage.client.transport.transport import Config, Transport

from drawdown.observe.lineage.settings import Destination
from drawdown.observe.lineage.spool import Spool

log = logging.getLogger(__name__)

_TRIES, _TRY_SECONDS = 10, 0.05
_WRONG = (400, 413, 422)
"""Answers that mean the event itself, so that sending it again cannot help."""


class Sender:
    """Keeps events and sends them; complete with its thread, which ends with the process.

    Raises:
        Exception: whatever OpenLineage's client says about its configuration.
    """

    def __init__(self, destination: Destination) -> None:
        self._spool = Spool(destination.spool)
        self._shown = destination.shown
        config = dict(destination.config)
        if file := config.get("transport", {}).get("log_file_path"):
            Path(file).parent.mkdir(parents=True, exist_ok=True)
        # The client adds its configured facets and tags, and filters; its transport here is the spool.
        self._client = OpenLineageClient(config=config, transport=_ToSpool(self._spool))
        self._transport: Any = OpenLineageClient(config=config).transport
        # What an earlier run could not deliver is the first to be sent.
        self._asked, self._done, self._ends = 1, 0, False
        self._changed = threading.Condition()
        self._failed = False
        threading.Thread(target=self._send_all, name="lineage", daemon=True).start()

    def add(self, event: RunEvent) -> None:
        """Keep an event and have it sent."""
        self._client.emit(event)
        with self._changed:
            self._asked += 1
            self._changed.notify_all()

    def close(self, seconds: float) -> None:
        """Wait until all events are sent, at most for these seconds; the thread ends after that."""
        with self._changed:
            sent = self._changed.wait_for(lambda: self._done == self._asked, seconds)
            self._ends = True
            self._changed.notify_all()
        if not sent and not self._failed:
            count = len(self._spool.waiting())
            log.warning("lineage: %s does not answer; %d events wait for the next run", self._shown, count)

    def _send_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ends or self._done < self._asked)
                if self._ends:
                    return
                asked = self._asked
            try:
                self._send_waiting()
            except Exception as error:  # noqa: BLE001 - whatever a transport raises, the run goes on
                self._say(error)
            with self._changed:
                self._done = asked
                self._changed.notify_all()

    def _send_waiting(self) -> None:
        if dropped := self._spool.drop_oldest():
            log.warning("lineage: %d events were dropped: too many wait for %s", dropped, self._shown)
        for _ in range(_TRIES):
            with self._spool.sending() as ours:
                while ours and (waiting := self._spool.waiting()):
                    for path in waiting:
                        self._send(path.read_text(encoding="utf-8"))
                        path.unlink(missing_ok=True)
            if ours:
                return
            # Another process sends, and may have read its last list before our event came.
            time.sleep(_TRY_SECONDS)

    def _send(self, text: str) -> None:
        """Send one event; raises what the transport raises, except for an event that is called wrong."""
        try:
            event = json.loads(text)
        except ValueError:
            log.warning("lineage: an event was not readable and was dropped")
            return
        try:
            self._transport.emit(event)
        except Exception as error:
            if _status(error) not in _WRONG:
                raise
            log.warning("lineage: %s refused an event (%s), which was dropped", self._shown, _status(error))

    def _say(self, error: Exception) -> None:
        """Write one line for a series of failures. The error's own text may name what nobody should read."""
        if not self._failed:
            said = _status(error) or type(error).__name__
            count = len(self._spool.waiting())
            log.warning(
                "lineage: %s did not take an event (%s); %d wait for the next run", self._shown, said, count
            )
        self._failed = True


class _ToSpool(Transport):
    """The transport of a client whose events are sent later, in the order of their times."""

    kind = "spool"
    config_class = Config

    def __init__(self, spool: Spool) -> None:
        self._spool = spool

    def emit(self, event: Any) -> None:
        at = datetime.fromisoformat(event.eventTime).timestamp()
        self._spool.add(Serde.to_json(event), int(at * 1e9))


def _status(error: Exception) -> int | None:
    """Return the status of an answer, if there was one."""
    with suppress(AttributeError, TypeError, ValueError):
        return int(error.response.status_code)  # type: ignore[attr-defined]
    return None
