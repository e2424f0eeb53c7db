"""Buckets as Spark reaches them: S3A's settings for each, and files that are written once.

The settings are set in the running application, since they hold keys: a ``--conf`` is visible to every user
of the machine. Executors get them with the tasks.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from drawdown.jvm.own_jar import LOCAL_FILES
from drawdown.spec import Project
from drawdown.spec.connections.object_storage import is_object_storage

LOG_STORE = {"spark.delta.logStore.s3a.impl": "drawdown.ObjectLogStore"}
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


def reach_buckets(session: SparkSession, project: Project) -> None:
    """Tell the application how to reach the project's buckets; call it before anything is read.

    A session may serve one project after another: for one on a disk, checkpoints are Spark's own again.
    """
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    conf = {**_PLAIN}
    if project.uses_object_storage:
        conf |= _S3A | (_OWN_CLASSES if has_own_classes(session) else {})
    for each in project.storages.values():
        conf |= each.hadoop_options
    if is_object_storage(project.storage_root):
        conf |= _CHECKPOINTS
    for name in {*_CHECKPOINTS, *_OWN_CLASSES} - set(conf):
        hadoop.unset(name)
    for name, value in conf.items():
        hadoop.set(name, value)


def counts_requests(session: SparkSession) -> bool:
    """Whether the application reaches buckets by classes of Drawdown's own, which need the jars of S3A."""
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    return all(hadoop.get(name) == value for name, value in _OWN_CLASSES.items())


def has_own_classes(session: SparkSession) -> bool:
    """Whether all processes of the application have the jar of Drawdown's own classes (jvm/own_jar.py)."""
    conf = session.sparkContext.getConf()
    return all(conf.get(name) == value for name, value in LOCAL_FILES.items())
