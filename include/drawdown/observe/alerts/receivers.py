"""A target of alerts: an address of Apprise, which knows Slack, mail, PagerDuty, webhooks and many others.

The address is a secret as a whole. Neither it nor what Apprise says about it is logged or shown.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import SecretStr

from drawdown.errors import MachineError, SourceError, SpecError

_TALKATIVE = ("apprise", "urllib3", "requests")
"""Loggers that may show a part of an address."""


class AlertReceiver:
    """One entry of `alert_targets:`, with its address."""

    def __init__(self, name: str, url: SecretStr | None) -> None:
        self.name = name
        self._url = url
        self._sender: Any = None

    def tell(self, title: str, text: str, *, over: bool) -> None:
        """Send one message.

        Args:
            over: whether the message says that something is over.

        Raises:
            SourceError: ``alerts.undelivered``. SpecError: ``alerts.address``.
            MachineError: ``alerts.no-library``.
        """
        with _without_a_word():
            if self._sender is None:
                self._sender = self._made()
            kind = "success" if over else "warning"
            try:
                sent = self._sender.notify(body=text, title=title, notify_type=kind, body_format="text")
            except Exception:  # noqa: BLE001 - whatever a library for a hundred services raises
                sent = False
        if not sent:
            raise SourceError(
                "alerts.undelivered",
                f"the alert target {self.name} did not take a message; it is sent again at the next schedule",
                where=f"alert_targets.{self.name} of include/project.yaml",
                do='try its address by hand: apprise -vv -b test "$ADDRESS"',
            )

    def _made(self) -> Any:
        try:
            from apprise import Apprise
        except ImportError:
            raise MachineError(
                "alerts.no-library",
                "alerts are sent by the library apprise, which is not installed",
                where="the environment of Airflow's workers",
                do="pip install 'drawdown[alerts]'",
            ) from None
        sender = Apprise()
        if self._url is None or not sender.add(self._url.get_secret_value()):
            raise SpecError(
                "alerts.address",
                f"the alert target {self.name} has no address that apprise can use",
                where=f"alert_targets.{self.name} of include/project.yaml",
                do="set the variable or the connection to an address as https://appriseit.com/services shows",
            )
        return sender


@contextmanager
def _without_a_word() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
