"""Buckets as Spark reaches them: S3A's settings for each, and files that are written once.

The settings are set in the running application, since they hold keys: a ``--conf`` is visible to every user
of the machine. Executors get them with the tasks.
"""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from drawdown.errors import MachineError
from drawdown.jvm.own_jar import LOCAL_FILES
from drawdown.spec import Project
from drawdown.spec.connections.object_storage import for_spark, is_object_storage

LOG_STORE = {f"spark.delta.logStore.{scheme}.impl": "drawdown.ObjectLogStore" for scheme in ("s3a", "gs")}
"""Of every application; the class, of Drawdown's own jar (jvm/java), is loaded for a table in a bucket."""

_CHECKPOINTS = {"spark.sql.streaming.checkpointFileManagerClass": "drawdown.ObjectCheckpoints"}
_OWN_CLASSES = {
    # S3A, with listings that start at a name (`order: name` of a file source).
    "fs.s3a.impl": "drawdown.BucketFiles",
    "fs.s3a.audit.execution.interceptors": "drawdown.RequestCounts",
}
"""For applications whose processes all have the jar of Drawdown's own classes."""

_PLAIN = {"fs.s3a.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}
"""For the others. It is Hadoop's default, and has to be set: to unset a key forgets its default, too."""

_S3A = {
    # For a bucket without a key: wherever Amazon's own programs look. Hadoop's default knows no pod's token.
    "fs.s3a.aws.credentials.provider": "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
    # The default wants a further library, to read ahead in objects that are larger than those of most runs.
    "fs.s3a.input.stream.type": "classic",
    # RocksDB's files go the way of all others. The way that S3A has for local files is another client, over
    # Netty, which waited 10 s for each small file at a server that answers at once (moto).
    "fs.s3a.optimized.copy.from.local.enabled": "false",
    # Blocks that wait for their upload; removed with the run's own folder.
    "fs.s3a.buffer.dir": "${java.io.tmpdir}/s3a",
    # The library's default waits for a server that does not answer for ten minutes and more.
    "fs.s3a.attempts.maximum": "5",
    "fs.s3a.retry.limit": "5",
    # By default twenty times, and each pause is twice the one before: days for a bucket that throttles.
    "fs.s3a.retry.throttle.limit": "6",
    # The library takes no less, and warns of it.
    "fs.s3a.connection.establish.timeout": "15s",
    "fs.s3a.connection.timeout": "30s",
}


_GOOGLE = {
    "fs.gs.impl": "drawdown.GoogleFiles",
    # For a bucket without a key: wherever Google's own programs look. Hadoop's default is the machine.
    "fs.gs.auth.type": "APPLICATION_DEFAULT",
    # By default each new object costs a question for each folder above it: whether an object has its name.
    "fs.gs.create.items.conflict.check.enable": "false",
}
"""For applications whose processes all have the jar of Drawdown's own classes. A cluster of Google's brings a
client of its own, with the machine's account."""


def reach_buckets(session: SparkSession, project: Project) -> None:
    """Tell the application how to reach the project's buckets; call it before anything is read.

    A session may serve one project after another: for one on a disk, checkpoints are Spark's own again.

    Raises:
        MachineError: ``storage.no-client``: the storage root is of a kind that Spark cannot reach here.
    """
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    conf = {**_PLAIN}
    if "s3" in project.bucket_schemes:
        conf |= _S3A | (_OWN_CLASSES if has_own_classes(session) else {})
    if "gs" in project.bucket_schemes and has_own_classes(session):
        conf |= _GOOGLE
    for each in project.storages.values():
        conf |= each.hadoop_options
    if is_object_storage(project.storage_root):
        conf |= _CHECKPOINTS
    for name in {*_CHECKPOINTS, *_OWN_CLASSES} - set(conf):
        hadoop.unset(name)
    for name, value in conf.items():
        hadoop.set(name, value)
    _require_client(session, project.storage_root)


def _require_client(session: SparkSession, address: str) -> None:
    scheme, found, _ = for_spark(address).partition("://")
    if not found:
        return
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    try:
        session._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, hadoop)  # type: ignore[union-attr]
    except Py4JJavaError as missing:
        said = str(missing.java_exception.getMessage()).splitlines()[0]
        raise MachineError(
            "storage.no-client",
            f"Spark has no client for {scheme}://: {said}",
            where=address,
            do="use s3:// or gs://, or a cluster whose Spark has Hadoop's client for it (untried:"
            " docs/object-storage.md)",
        ) from None


def counts_requests(session: SparkSession) -> bool:
    """Whether the application reaches buckets by classes of Drawdown's own, which need the jars of S3A."""
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    return all(hadoop.get(name) == value for name, value in _OWN_CLASSES.items())


def has_own_classes(session: SparkSession) -> bool:
    """Whether all processes of the application have the jar of Drawdown's own classes (jvm/own_jar.py)."""
    conf = session.sparkContext.getConf()
    return all(conf.get(name) == value for name, value in LOCAL_FILES.items())
