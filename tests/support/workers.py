"""`make test` gives files of tests to several processes (pytest-xdist); only their parent writes pages."""

from __future__ import annotations

import pytest


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")
