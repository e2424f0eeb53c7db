"""Drawdown: Structured Streaming as scheduled batch work.

The names in `__all__` are public, and so are `drawdown.jobs`, `drawdown.testing`, `drawdown.airflow.factory`
and `drawdown.airflow.plugin`; every other module may change. A name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drawdown.api import Pipeline, Project
    from drawdown.application.plan import Plan
    from drawdown.application.watcher import Watcher
    from drawdown.errors import (
        AuditFailed,
        BusyError,
        DrawdownError,
        MachineError,
        RefusedError,
        SourceError,
        SpecError,
        TransformError,
    )
    from drawdown.metastore.records import Counts, Run
    from drawdown.plan.preflight import Preflight
    from drawdown.plan_verdicts import PlanVerdict
    from drawdown.sinks.batch_token import BatchToken

_PUBLIC = {
    "drawdown.api": ("Pipeline", "Project"),
    "drawdown.application.plan": ("Plan",),
    "drawdown.application.watcher": ("Watcher",),
    "drawdown.errors": (
        "AuditFailed", "BusyError", "DrawdownError", "MachineError", "RefusedError", "SourceError",
        "SpecError", "TransformError",
    ),
    "drawdown.metastore.records": ("Counts", "Run"),
    "drawdown.plan.preflight": ("Preflight",),
    "drawdown.sinks.batch_token": ("BatchToken",),
    "drawdown.plan_verdicts": ("PlanVerdict",),
}  # fmt: skip
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = [
    "AuditFailed", "BatchToken", "BusyError", "Counts", "DrawdownError", "MachineError", "Pipeline", "Plan",
    "PlanVerdict", "Preflight", "Project", "RefusedError", "Run", "SourceError", "SpecError",
    "TransformError", "Watcher",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'drawdown' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
