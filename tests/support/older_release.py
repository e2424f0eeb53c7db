"""What commit 5a70180 has written: `clicks` with state, a table, a quarantine and two open windows."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.sandbox import Sandbox

RELEASE = Path(__file__).parents[1] / "fixtures/release_5a70180"
WRITTEN_AT = "/tmp/release_5a70180/project/storage"
CLOSED = [("10:00", "a", 2), ("10:00", "b", 1), ("10:01", "a", 1)]
"""Windows that the release had published; those of 10:03 are in its state."""
OPEN = [("10:03", "a", 1), ("10:03", "b", 1)]


def unpacked(root: Path, spark: SparkSession | None = None, release: Path = RELEASE) -> Sandbox:
    """A project as the release left it, in another place."""
    sandbox = Sandbox(root, spark)
    shutil.copytree(release, root, dirs_exist_ok=True)
    return sandbox
