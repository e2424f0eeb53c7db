"""The session of tests: local[2], no UI, two shuffle partitions, the connectors that set-up fetched."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from drawdown.jvm.class_archive import AVRO_LIMITS, driver_conf
from drawdown.jvm.own_jar import LOCAL_FILES
from drawdown.spark.session import application_session

ROOT = Path(__file__).parents[2]


def start_session() -> SparkSession:
    conf = driver_conf(ROOT, ("s3", "gs"))
    # This one lives long enough for the optimising compiler, which tests/conftest.py takes from all others.
    conf["spark.driver.extraJavaOptions"] += f" {AVRO_LIMITS} -XX:TieredStopAtLevel=4"
    session = application_session(
        "tests",
        {
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            # What the largest bounded value takes must fit beside the plans that a thousand tests left.
            "spark.driver.memory": "1536m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            **conf,
            **LOCAL_FILES,
            "spark.sql.shuffle.partitions": "2",
        },
    )
    # pytest's own folders outlive the process, so that a test that failed can be looked at.
    tempfile.tempdir = None
    session.sparkContext.setLogLevel("OFF")
    return session


def cached(session: SparkSession) -> list[str]:
    """What the application keeps in its cache, by name; Delta's own snapshots of tables are left out."""
    kept = session.sparkContext._jsc.getPersistentRDDs()
    names = [str(kept[key].rdd().name()) for key in kept]
    return [name for name in names if not name.startswith("Delta Table State")]
