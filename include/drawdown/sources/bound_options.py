"""Values of options that streams of files and of Delta tables share, the bounds of a batch among them.

What Spark can read (FileStreamOptions, DeltaOptions); it would refuse the rest when the query starts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from drawdown.values.model import problem

_VALUES: dict[str, tuple[str, str]] = {
    "maxFilesPerTrigger": (r"[1-9]\d{0,8}", "a whole number from 1"),
    "maxBytesPerTrigger": (r"[1-9]\d*([kmgtp]?b|[kmgtp])?", "a size such as 100m"),
    "maxCachedFiles": (r"\d{1,9}", "a whole number"),
    "discardCachedInputRatio": (r"0(\.\d+)?|1(\.0+)?", "a number from 0 to 1"),
    "maxFileAge": (r"\d+(us|ms|s|m|min|h|d)?", "a time such as 7d or 12h"),
    "latestFirst": ("true|false", "true or false"),
    "fileNameOnly": ("true|false", "true or false"),
    "cleanSource": ("archive|delete|off", "archive, delete or off"),
}


def check_values(options: Mapping[str, object]) -> None:
    """Raises a PydanticCustomError for a value that Spark cannot read, and for two bounds of a batch."""
    for name in options.keys() & _VALUES.keys():
        pattern, must_be = _VALUES[name]
        if not re.fullmatch(pattern, str(options[name]).strip(), re.IGNORECASE):
            raise problem("wrong-value", f"must be {must_be}", "options", name, do="correct the value")
    if "maxFilesPerTrigger" in options and "maxBytesPerTrigger" in options:
        raise problem(
            "contradiction",
            "maxFilesPerTrigger and maxBytesPerTrigger cannot both be given",
            "options",
            "maxBytesPerTrigger",
            do="keep one of them",
        )
