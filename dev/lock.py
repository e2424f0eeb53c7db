"""Regenerates what set-up pins: both ``requirements.txt`` and ``jars.lock`` (``make lock``)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from drawdown.errors import DrawdownError, MachineError
from drawdown.jvm.ivy import Ivy
from drawdown.jvm.jars import BROKER, CONNECTORS, GOOGLE_STORAGE, LOCK_FILE, OBJECT_STORAGE, Jar, sha256

CONNECTOR_COORDINATES = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    # 4.2.0 of this one jar is missing from some mirrors; it is used for delegation tokens only.
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
    "io.delta:delta-spark_4.2_2.13:4.4.0",
    "io.delta:delta-storage:4.4.0",
    "org.postgresql:postgresql:42.7.7",
    # The newest whose jar is where the others are; Spark 4.2 reads with it (from_avro: its tests decode).
    "org.apache.spark:spark-avro_2.13:4.1.1",
)
_SDK_MODULES = (
    "annotations apache-client arns auth aws-core aws-query-protocol aws-xml-protocol checksums "
    "checksums-spi crt-core endpoints-spi http-auth http-auth-aws http-auth-aws-eventstream http- "
    "auth-spi http-client-spi identity-spi json-utils metrics-spi netty-nio-client profiles "
    "protocol-core regions retries retries-spi s3 s3-transfer-manager sdk-core sts third-party- "
    "jackson-core utils utils-lite "
)
OBJECT_STORAGE_COORDINATES = (
    "org.apache.hadoop:hadoop-aws:3.5.0",
    # The modules that S3A uses: the SDK's own bundle, which hadoop-aws asks for, has 686 MB. What they need
    # of Netty, Apache's client and codecs is among Spark's own jars.
    *(f"software.amazon.awssdk:{module}:2.35.4" for module in _SDK_MODULES.split()),
    "software.amazon.eventstream:eventstream:1.0.1",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
    "org.reactivestreams:reactive-streams:1.0.4",
)
GOOGLE_STORAGE_COORDINATES = (
    # With Google's own client in it, under names of its own; of the version of Hadoop that Spark includes.
    "org.apache.hadoop:hadoop-gcp:3.5.0",
)
BROKER_COORDINATES = (
    "org.apache.kafka:kafka_2.13:4.3.1",
    # Kafka declares no logging backend: without this one a broker that fails says nothing.
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
)
HEADER = "# Written by `make lock`: every jar set-up fetches, by exact coordinate, with its SHA-256.\n"


REQUIREMENTS = ("requirements", "dev/requirements", "tests/moto")
"""What runs; what tests and checks need beside it, at the same versions; a server in a folder of its own."""


def lock_requirements(project_root: Path) -> None:
    """Compile each ``.in`` into a ``.txt`` with hashes, for Python 3.11 and later; pins that fit stay."""
    runtime, dev, moto = REQUIREMENTS
    _compile(project_root, runtime)
    _compile(project_root, dev, "--constraints", f"{runtime}.txt")
    _compile(project_root, moto)


def _compile(project_root: Path, name: str, *more: str) -> None:
    files = [f"{name}.in", "--output-file", f"{name}.txt", *more]
    options = ["--quiet", "--generate-hashes", "--python-version", "3.11", "--universal"]
    command = [sys.executable, "-m", "uv", "pip", "compile", *options, *files]
    done = subprocess.run(command, cwd=project_root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MachineError(
            "lock.requirements",
            f"the requirements could not be resolved: {done.stderr.strip()[-500:]}",
            where=str(project_root / f"{name}.in"),
            do="change what contradicts itself there, or check the network",
        )


def lock_jars(lock_file: Path = LOCK_FILE) -> list[Jar]:
    """Resolve each list once and write every jar they need; the broker's with all dependencies."""
    with Ivy(Path(tempfile.mkdtemp(prefix="drawdown-lock-"))) as ivy:
        jars = [
            *_locked(CONNECTORS, ivy.resolve(CONNECTOR_COORDINATES)),
            *_locked(OBJECT_STORAGE, ivy.resolve(OBJECT_STORAGE_COORDINATES)),
            *_locked(GOOGLE_STORAGE, ivy.resolve(GOOGLE_STORAGE_COORDINATES)),
            *_locked(BROKER, ivy.resolve(BROKER_COORDINATES, transitive=True)),
        ]
    lock_file.write_text(HEADER + "".join(_entry(jar) for jar in sorted(jars)))
    return jars


def main() -> int:
    """Both, from the project root; prints errors without a trace."""
    try:
        lock_requirements(Path.cwd())
        print(f"{len(lock_jars())} jars locked in {LOCK_FILE.name}")
    except DrawdownError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def _locked(folder: str, files: Sequence[Path]) -> list[Jar]:
    return [Jar(folder, _coordinate(file), sha256(file)) for file in files]


def _coordinate(file: Path) -> str:
    """``group:artifact:version`` of a file in Ivy's cache layout, where each part has a name of its own.

    MavenUtils retrieves to ``jars/group_artifact-version.jar``, which cannot be taken apart safely
    (artifacts hold ``_`` and ``-``); the cache is ``cache/group/artifact/jars/artifact-version.jar``.
    """
    cache = file.parent.parent / "cache"
    for cached in cache.glob("*/*/*/*.jar"):
        group, artifact = cached.parts[-4], cached.parts[-3]
        version = cached.stem.removeprefix(f"{artifact}-")
        if file.name == f"{group}_{artifact}-{version}.jar":
            return f"{group}:{artifact}:{version}"
    raise MachineError(
        "lock.unknown-jar",
        f"Ivy retrieved {file.name}, which its cache does not hold",
        where=str(cache),
        do="report it: Ivy's layout has changed",
    )


def _entry(jar: Jar) -> str:
    lines = [f'{name} = "{value}"' for name, value in vars(jar).items()]
    return "\n[[jar]]\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
