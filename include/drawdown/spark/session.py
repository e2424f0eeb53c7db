"""Spark sessions: one for the application, and a separate one for every query.

Shuffle partitions, state store settings, the watermark policy and temporary views belong to a
session, so two pipelines of one application never see each other's.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import time
from collections.abc import Mapping

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from drawdown.jvm.spark_start import why_not_started
from drawdown.processes.scratch import note_master, starting_spark
from drawdown.spark.object_storage import LOG_STORE, reach_buckets
from drawdown.spark.sql_gate import CONF, confine
from drawdown.spec import Pipeline, Project
from drawdown.spec.query_settings import BATCHES_TO_RETAIN

APPLICATION_CONF: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # With Delta's default of 50, every read of a small table's log takes 50 tasks.
    "spark.databricks.delta.snapshotPartitions": "2",
    # Delta refuses a version that is older than a week, whether its files exist or not. A replay may read an
    # older one: upkeep keeps its files, and sources/delta/replay.py first checks that each exists.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    # Other readers take the default, INT96, as nanoseconds in 64 bits: after 2262, where rows too far in the
    # future may be, they read another time.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # With the default, a Python UDF directly over a parquet scan hangs (seen with Spark 4.2.0).
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    # The pipelines of a group share the cores evenly, each in its own pool (jobs.py).
    "spark.scheduler.mode": "FAIR",
    **LOG_STORE,
}

_PROVIDERS = {
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "hdfs": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
}

_STATE_STORE = "spark.sql.streaming.stateStore."

# A scheduled run is shorter than the maintenance interval (60 s), so without unloadOnCommit no
# snapshot is ever uploaded and no old version removed.
_STATE_DEFAULTS: Mapping[str, str] = {
    "rocksdb.changelogCheckpointing.enabled": "true",
    "rocksdb.trackTotalNumberOfRows": "false",
    "unloadOnCommit": "true",
}

# By default Spark keeps 100 batches: 200 files in each log and more in each partition of state/, which every
# run lists. Only the query and a preflight read the log of seen files, so compacted entries need not wait ten
# minutes for their removal.
_LOG_DEFAULTS: Mapping[str, str] = {
    "spark.sql.streaming.minBatchesToRetain": str(BATCHES_TO_RETAIN),
    "spark.sql.streaming.fileSource.log.cleanupDelay": "1min",
}


def application_session(name: str, conf: Mapping[str, str], project: Project | None = None) -> SparkSession:
    """Start or return the one SparkSession of this process.

    Args:
        name: shown as the application's name.
        conf: further Spark settings (master, driver class path ...); under spark-submit the
            launcher has given them already and the mapping is empty.
        project: whose buckets the application reaches.

    Raises:
        MachineError: ``java.*``, ``spark.*``: no JVM started.
    """
    # Without it Spark's Python workers run the first `python3` of the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # PySpark passes timestamps to Python code (UDFs, expectations) in the process's own time zone.
    os.environ["TZ"] = "UTC"
    time.tzset()
    # Py4J logs each of its connections, even while the interpreter ends, and a trace of what it raises.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # Spark also prints what it refuses, as JSON with the Java stack; our errors say it in a sentence.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
    logging.getLogger().addFilter(_not_of_py4j)
    builder = SparkSession.builder.appName(name)
    for key, value in {**APPLICATION_CONF, **conf}.items():
        builder = builder.config(key, value)
    # Under spark-submit the JVM is already running, in the folder that its guard has made.
    ours = SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ
    with starting_spark() if ours else contextlib.nullcontext():
        try:
            root = builder.getOrCreate()
        except (PySparkRuntimeError, OSError) as cause:
            if ours and SparkContext._gateway is None:
                raise why_not_started(cause) from None
            raise
    if project is not None:
        reach_buckets(root, project)
    note_master(str(root.sparkContext.master))
    # Start it now: two queries that start at once would each start one.
    ensure_callback_server_started(root.sparkContext._gateway)  # type: ignore[no-untyped-call]
    return root


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Drop Py4J's log record, with a trace, of a broken connection, which the run's error reports."""
    return "/py4j/" not in record.pathname


def spark_is_gone(root: SparkSession, within: float = 0) -> bool:
    """Whether the JVM that this process started is gone; under spark-submit stop_pipe.py checks that.

    Args:
        within: seconds to wait for its end: its sockets close a moment before.
    """
    process = getattr(root.sparkContext._gateway, "proc", None)
    if process is None:
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(within)
    return process.poll() is not None


def stop_application(root: SparkSession) -> None:
    """Stop Spark, or clean up after it has ended by itself."""
    if spark_is_gone(root):
        return
    # A JVM that was killed refuses connections a moment before it is seen to be gone.
    with contextlib.suppress(Py4JError, OSError):
        root.stop()


def query_session(root: SparkSession, pipeline: Pipeline) -> SparkSession:
    """Return a session for one pipeline's query: the same context, its own settings and views."""
    session = root.newSession()
    for key, value in query_conf(pipeline).items():
        session.conf.set(key, value)
    confine(session)
    return session


def query_conf(pipeline: Pipeline) -> dict[str, str]:
    """Return the Spark settings of a pipeline's query; the first run fixes the number of partitions."""
    state = pipeline.state
    conf = {
        **APPLICATION_CONF,
        **CONF,
        "spark.sql.shuffle.partitions": str(state.partitions),
        "spark.sql.streaming.stateStore.providerClass": _PROVIDERS[state.provider],
        # The query's own thread cleans files: a run is too short for a background thread.
        "spark.sql.streaming.fileSource.cleaner.numThreads": "0",
        "spark.sql.streaming.multipleWatermarkPolicy": pipeline.watermark_policy,
    }
    conf |= {_STATE_STORE + k: option_text(v) for k, v in {**_STATE_DEFAULTS, **state.options}.items()}
    conf |= {**_LOG_DEFAULTS, **{name: option_text(value) for name, value in pipeline.conf.items()}}
    # Static settings belong to the application; a query session may not set them.
    return {key: value for key, value in conf.items() if key not in _STATIC}


def option_text(value: str | int | float | bool) -> str:
    """Return an option's value as Spark writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


_STATIC = frozenset(
    {"spark.sql.extensions", "spark.sql.catalog.spark_catalog", "spark.scheduler.mode", *LOG_STORE}
)


def reading_session(root: SparkSession) -> SparkSession:
    """Return a session that may run a batch's own source plan again as a batch query.

    Spark refuses a plan with streaming leaves outside a stream. Its reasons do not apply to a batch whose
    offsets are already fixed (rows/row_fates.py uses it). The plan has the rules of quality.yaml in it, so
    the session is confined as the query's is.
    """
    session = root.newSession()
    for key, value in {**CONF, "spark.sql.streaming.unsupportedOperationCheck": "false"}.items():
        session.conf.set(key, value)
    confine(session)
    return session
