"""Options that streams of files and of Delta tables share: the bounds of a batch."""

from __future__ import annotations

from collections.abc import Mapping

from drawdown.values.model import problem
from drawdown.values.option_types import COUNT, SIZE

BOUNDS = COUNT.of("maxFilesPerTrigger") | SIZE.of("maxBytesPerTrigger")


def refuse_two_bounds(options: Mapping[str, object]) -> None:
    """Raise a PydanticCustomError for two bounds of a batch: Spark takes only one."""
    if "maxFilesPerTrigger" in options and "maxBytesPerTrigger" in options:
        raise problem(
            "contradiction",
            "maxFilesPerTrigger and maxBytesPerTrigger cannot both be given",
            "options",
            "maxBytesPerTrigger",
            do="keep one of them",
        )
