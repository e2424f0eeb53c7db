"""Imports Great Expectations late, once, quietly and without its network calls."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import warnings

_LOADING = threading.Lock()


def prefetch() -> None:
    """Start the import (2 to 8 s of CPU) in the background, so that it is done before the audit.

    Call it once the Spark session is up: pyspark is imported by then, so the two threads do not load the same
    modules. A process that ends earlier does not wait for the import.
    """
    threading.Thread(target=_load_ahead, name="great-expectations-import", daemon=True).start()


def load() -> None:
    """Wait until Great Expectations is imported, by this thread or by :func:`prefetch`.

    Raises:
        ImportError: it is not installed, or one of its dependencies is broken.
    """
    with _LOADING:
        # 1.24.1 sends nothing; other 1.x releases post usage events unless disabled before the import.
        os.environ["GX_ANALYTICS_ENABLED"] = "false"
        show = warnings.showwarning
        import great_expectations  # noqa: F401

        # Its validator redirects the process's warnings to an unused logger.
        if warnings.showwarning is not show:
            logging.captureWarnings(False)
        # What it logs (a failed metric, with a trace) is also in the results. Some of its loggers set their
        # own level, so propagation is switched off instead.
        log = logging.getLogger("great_expectations")
        log.propagate = False
        log.handlers = [logging.NullHandler()]


def _load_ahead() -> None:
    # The audit's own load() meets the same failure and reports it.
    with contextlib.suppress(ImportError):
        load()
