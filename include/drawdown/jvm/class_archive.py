"""The class archive (AppCDS) of the driver JVM: Java maps it instead of loading and checking classes.

One training run at set-up makes it, and every later driver uses it. Java ignores it when class path or
version do not match: a missing or stale archive costs seconds, but never fails a run. Classes are archived
only when the *application* class loader loads them, so the connectors are on the driver's class path
(``spark.driver.extraClassPath``) in one fixed order; jars of ``--jars`` have their own loader.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from drawdown.jvm.jars import CONNECTORS, bucket_jars, jar_paths
from drawdown.jvm.java import require_java
from drawdown.jvm.own_jar import LOCAL_FILES, own_jar
from drawdown.jvm.spark_home import spark_home

TRAINING = Path(__file__).with_name("archive_training.py")
FAILED = ".failed"
TRAINING_TIMEOUT = 300.0
"""Seconds; long, because a busy machine may need several times what an idle one does."""
CHEAP = "-XX:TieredStopAtLevel=1"
"""The archive does not depend on the compiler, and the training is too short for the optimising one."""
QUIET = "-Xlog:disable -Xlog:all=error:stderr"
LATE = " ".join(
    f"-XX:Tier4{threshold}={30 * javas_own}"
    for threshold, javas_own in {
        "InvocationThreshold": 5_000,
        "MinInvocationThreshold": 600,
        "CompileThreshold": 15_000,
        "BackEdgeThreshold": 40_000,
    }.items()
)
"""The optimising compiler waits until code is 30 times as hot as by Java's defaults (decision 20)."""


AVRO_LIMITS = " ".join(
    f"-Dorg.apache.avro.limits.{what}={most}"
    for what, most in {
        "bytes.maxLength": 64 << 20,
        "string.maxLength": 64 << 20,
        "collectionItems.maxLength": 10_000_000,
    }.items()
)
"""Avro takes as much memory as a record says that it holds, before it reads it: five bytes ended a driver."""


def driver_class_path(project_root: Path, buckets: Collection[str] = ()) -> str:
    """Return all jars for ``spark.driver.extraClassPath``. Raises MachineError ``jars.missing``.

    Those for buckets come last: an archive fits a class path that begins with its own.

    Args:
        buckets: the schemes of the buckets that are reached, ``s3`` and ``gs``.
    """
    last = bucket_jars(project_root / ".drawdown", buckets)
    return os.pathsep.join(map(str, [*_connectors(project_root), *last]))


def driver_conf(project_root: Path, buckets: Collection[str] = ()) -> dict[str, str]:
    """Return the Spark settings of a driver: its class path and Java options."""
    return {
        "spark.driver.extraClassPath": driver_class_path(project_root, buckets),
        "spark.driver.extraJavaOptions": java_options(project_root),
    }


def java_options(project_root: Path) -> str:
    """Return Java options of a driver, or an executor with the same class path: compiler and archive."""
    if archive := archive_path(project_root):
        # Java ignores an archive that does not fit, and by default says so on standard output.
        return f"{LATE} -XX:SharedArchiveFile={archive} {QUIET}"
    return LATE


def archive_path(project_root: Path) -> Path | None:
    """Return the archive that set-up made; None without one. Java checks whether it fits when it maps it."""
    return next(iter(_folder(project_root).glob("*.jsa")), None)


def is_settled(project_root: Path) -> bool:
    """Whether the training for this Java and these jars was done or has failed: it is not tried twice."""
    wanted = _wanted(project_root)
    return wanted.exists() or wanted.with_suffix(FAILED).exists()


def make_archive(project_root: Path) -> bool:
    """Run the training and keep its archive instead of any other; return whether there is one now.

    The training's output goes to standard output and error.
    """
    target = _wanted(project_root)
    target.parent.mkdir(parents=True, exist_ok=True)
    for stale in target.parent.iterdir():
        stale.unlink()
    aside = target.with_suffix(".making")
    with tempfile.TemporaryDirectory(prefix="drawdown-archive-") as scratch:
        try:
            subprocess.run(
                _training(project_root, aside),
                cwd=scratch,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable},
                timeout=TRAINING_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            print(f"the training took more than {TRAINING_TIMEOUT:.0f} s", file=sys.stderr)
    if not aside.exists():
        target.with_suffix(FAILED).touch()
        return False
    aside.replace(target)
    return True


def _training(project_root: Path, archive: Path) -> list[str]:
    """Return the training's command, by spark-submit as for jobs: the class path must be identical."""
    conf = {
        "spark.driver.extraClassPath": driver_class_path(project_root),
        "spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={archive} {CHEAP} {QUIET}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        **LOCAL_FILES,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }
    options = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    spark_submit = str(Path(sys.executable).with_name("spark-submit"))
    return [spark_submit, "--master", "local[2]", *options, str(TRAINING)]


def _wanted(project_root: Path) -> Path:
    """Return the archive's path, with a hash of what Java checks: its version, the jars' names and sizes."""
    jars = [*_connectors(project_root), *sorted((spark_home() / "jars").glob("*.jar"))]
    parts = [require_java().version, *(f"{jar} {jar.stat().st_size}" for jar in jars)]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return _folder(project_root) / f"{key}.jsa"


def _folder(project_root: Path) -> Path:
    return project_root / ".drawdown" / "archive"


def _connectors(project_root: Path) -> list[Path]:
    return [*jar_paths(project_root / ".drawdown", CONNECTORS), own_jar(project_root)]
