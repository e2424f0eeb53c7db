"""Two drivers that both believe they hold the lease write one checkpoint in a bucket: one commits a batch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from drawdown.spark.object_storage import reach_buckets
from tests.support.buckets import access_to
from tests.support.s3_proxy import Delay, LoseAnswer, Rule, S3Proxy
from tests.support.s3_servers import S3Server
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.capability("OBJ-14")

OURS = "drawdown.ObjectCheckpoints"
SPARKS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
CLASS = "spark.sql.streaming.checkpointFileManagerClass"
WRITERS = 4


@pytest.fixture
def bucket(s3: S3Server, s3_proxy: S3Proxy, sandbox: Sandbox) -> str:
    """A bucket that Spark reaches through the proxy."""
    name = s3.bucket()
    assert sandbox.spark is not None
    reach_buckets(sandbox.spark, replace(sandbox.project, storages={"lake": access_to(s3_proxy, name)}))
    return name


@pytest.fixture
def manager(spark: SparkSession) -> Callable[[str, str], Any]:
    """A file manager of a class, for a folder."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()

    def made(of: str, folder: str) -> Any:
        hadoop.set(CLASS, of)
        path = gateway.jvm.org.apache.hadoop.fs.Path(folder)
        managers = gateway.jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
        return managers.create(path, hadoop), path

    return made


def commit(manager: Any, path: Any, content: bytes) -> bool:
    """Write a batch's commit as Spark does; False when another one was there."""
    stream = manager.createAtomic(path, False)
    try:
        stream.write(bytearray(content))
        stream.close()
    except Py4JJavaError as refused:
        if "FileAlreadyExistsException" not in refused.java_exception.toString():
            raise
        stream.cancel()
        return False
    return True


def race(manager: Any, path: Any) -> list[int]:
    """Let several commit the same batch at once; return those that were told they had."""
    won: list[int] = []

    def one(number: int) -> None:
        if commit(manager, path, str(number).encode()):
            won.append(number)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won


def test_of_several_drivers_that_commit_a_batch_one_is_told_that_it_has(
    spark: SparkSession, s3: S3Server, s3_proxy: S3Proxy, bucket: str, manager: Callable[[str, str], Any]
) -> None:
    ours, folder = manager(OURS, f"s3a://{bucket}/checkpoint/commits")
    path = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(folder, "7")
    s3_proxy.add(Rule(Delay(0.5), kinds=("PUT",)))
    won = race(ours, path)
    assert len(won) == 1
    assert s3.client(bucket).get("checkpoint/commits/7") == str(won[0]).encode()
    assert s3.client(bucket).keys() == ["checkpoint/commits/7"]


def test_with_sparks_own_manager_several_are(
    spark: SparkSession, s3_proxy: S3Proxy, bucket: str, manager: Callable[[str, str], Any]
) -> None:
    """Why there is one of our own: there a rename is a look, a copy and a delete."""
    theirs, folder = manager(SPARKS, f"s3a://{bucket}/checkpoint/commits")
    path = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(folder, "7")
    s3_proxy.add(Rule(Delay(0.5), kinds=("PUT",)))
    assert len(race(theirs, path)) > 1


def test_a_commit_whose_answer_was_lost_is_sent_again_and_is_the_drivers_own(
    spark: SparkSession, s3_proxy: S3Proxy, bucket: str, manager: Callable[[str, str], Any]
) -> None:
    ours, folder = manager(OURS, f"s3a://{bucket}/checkpoint/commits")
    path = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(folder, "8")
    lost = Rule(LoseAnswer(), kinds=("PUT",), times=1)
    s3_proxy.add(lost)
    assert commit(ours, path, b"mine")
    assert lost.struck == 1
    assert not commit(ours, path, b"another's")


def test_what_is_cancelled_is_never_seen_and_a_missing_folder_is_empty(
    spark: SparkSession, s3: S3Server, bucket: str, manager: Callable[[str, str], Any]
) -> None:
    ours, folder = manager(OURS, f"s3a://{bucket}/checkpoint/state")
    path = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(folder, "1.changelog")
    assert len(ours.list(folder)) == 0
    ours.mkdirs(folder)
    stream = ours.createAtomic(path, True)
    stream.write(bytearray(b"half"))
    stream.cancel()
    assert s3.client(bucket).keys() == []
    for content in (b"one", b"two"):
        stream = ours.createAtomic(path, True)
        stream.write(bytearray(content))
        stream.close()
    assert s3.client(bucket).get("checkpoint/state/1.changelog") == b"two"
