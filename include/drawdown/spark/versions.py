"""The versions that a checkpoint is written with, and the formats of state that its first batch fixed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pyspark.sql import SparkSession

from drawdown.checkpoint import CheckpointFiles

# These three are noted from the spec, under names of their own.
_FROM_SPEC = frozenset({
    "spark.sql.shuffle.partitions",
    "spark.sql.streaming.stateStore.providerClass",
    "spark.sql.streaming.multipleWatermarkPolicy",
})  # fmt: skip


def engine_versions(session: SparkSession) -> dict[str, str]:
    """Spark, Delta and Drawdown as they run now."""
    found = {"spark": session.version}
    for name, package in (("delta", "delta-spark"), ("drawdown", "drawdown")):
        try:
            found[name] = version(package)
        except PackageNotFoundError:
            found[name] = "from source"
    return found


def state_formats(files: CheckpointFiles, batch_id: int) -> Mapping[str, Any]:
    """Settings that Spark froze in the offset log with the first batch, by Spark's names: versions of the
    state formats, codecs, encodings (OffsetSeqMetadata.relevantSQLConfs, Spark 4.2)."""
    frozen: Mapping[str, Any] = files.offsets(batch_id).metadata.get("conf", {})
    return {key: value for key, value in frozen.items() if key not in _FROM_SPEC}
