"""Where the virtual environment's Spark is."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from drawdown.errors import MachineError
from drawdown.jvm.installation import how_to_install


def spark_home() -> Path:
    """Return the folder of pyspark without importing it; MachineError ``spark.missing``."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MachineError("spark.missing", "pyspark is not installed", do=how_to_install("spark"))
    return Path(spec.origin).parent
