"""A fault that strikes in this process, at a named step."""

from __future__ import annotations

import pytest

from drawdown import fault_points
from drawdown.fault_points import FAULT


class armed:
    """A fault in this process."""

    def __init__(self, fault: str) -> None:
        self.patch, self.fault = pytest.MonkeyPatch(), fault

    def __enter__(self) -> None:
        self.patch.setenv(FAULT, self.fault)
        fault_points._armed.cache_clear()

    def __exit__(self, *_: object) -> None:
        self.patch.undo()
        fault_points._armed.cache_clear()
