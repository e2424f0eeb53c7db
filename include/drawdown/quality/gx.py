"""Great Expectations, imported late, once, quietly and without its network calls."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import warnings

_LOADING = threading.Lock()


def prefetch() -> None:
    """Starts the import (2 to 8 s of CPU) in the background, so that a drain's audit finds it done.

    Call it once the Spark session is up: pyspark is then imported, and the two threads do not load
    the same modules. A process that ends first does not wait for it.
    """
    threading.Thread(target=_load_ahead, name="great-expectations-import", daemon=True).start()


def load() -> None:
    """Returns when Great Expectations is imported, by this thread or by the one of :func:`prefetch`.

    Raises:
        ImportError: it is not installed, or something it needs is broken.
    """
    with _LOADING:
        # 1.24.1 sends nothing; other 1.x releases post usage events unless told before the import.
        os.environ["GX_ANALYTICS_ENABLED"] = "false"
        show = warnings.showwarning
        import great_expectations  # noqa: F401

        # Its validator redirects the process's warnings to a logger that nobody reads.
        if warnings.showwarning is not show:
            logging.captureWarnings(False)
        # What it logs (a metric's failure, with a trace) is in the results, where it is read. Some
        # of its loggers set levels of their own, so the way up is closed instead.
        log = logging.getLogger("great_expectations")
        log.propagate = False
        log.handlers = [logging.NullHandler()]


def _load_ahead() -> None:
    # The audit's own load() meets the same failure and reports it.
    with contextlib.suppress(ImportError):
        load()
