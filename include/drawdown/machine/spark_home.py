"""Where the virtual environment's Spark is."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from drawdown.errors import MachineError


def spark_home() -> Path:
    """The folder of pyspark, found without importing it; MachineError ``spark.missing``."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MachineError("spark.missing", "pyspark is not installed", do="make setup")
    return Path(spec.origin).parent
