"""The versions that write a checkpoint, and the state formats that its first batch fixed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pyspark.sql import SparkSession

from drawdown.checkpoint import CheckpointFiles

# These three are recorded from the spec, under other names.
_FROM_SPEC = frozenset({
    "spark.sql.shuffle.partitions",
    "spark.sql.streaming.stateStore.providerClass",
    "spark.sql.streaming.multipleWatermarkPolicy",
})  # fmt: skip


def engine_versions(session: SparkSession) -> dict[str, str]:
    """Return the running versions of Spark, Delta and Drawdown."""
    found = {"spark": session.version}
    for name, package in (("delta", "delta-spark"), ("drawdown", "drawdown")):
        try:
            found[name] = version(package)
        except PackageNotFoundError:
            found[name] = "from source"
    return found


def state_formats(files: CheckpointFiles, batch_id: int) -> Mapping[str, Any]:
    """Return settings that the first batch fixed in the offset log, by Spark's names.

    They are versions of state formats, codecs and encodings (OffsetSeqMetadata.relevantSQLConfs, Spark 4.2).
    """
    frozen: Mapping[str, Any] = files.offsets(batch_id).metadata.get("conf", {})
    return {key: value for key, value in frozen.items() if key not in _FROM_SPEC}
