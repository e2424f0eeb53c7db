"""The Ivy that Spark includes (``org.apache.spark.util.MavenUtils``): fetches artifacts without Maven.

To use another repository than Spark's default, set Spark's own variable DEFAULT_ARTIFACT_REPOSITORY.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from drawdown.errors import MachineError


class Ivy:
    """One JVM (the venv's pyspark, through Py4J) with a private Ivy home that is removed at the end.

    Ivy prints to this process's standard output: run it where that goes into a log.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._gateway: Any = None

    def __enter__(self) -> Ivy:
        from pyspark import java_gateway

        launch: Any = java_gateway.launch_gateway
        self._gateway = launch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gateway.shutdown()
        shutil.rmtree(self._home, ignore_errors=True)

    def resolve(self, coordinates: Iterable[str], *, transitive: bool = False) -> list[Path]:
        """Return the files of these ``group:artifact:version``, with ``transitive`` also their dependencies.

        Each is at ``<home>/jars/group_artifact-version.jar`` and, until the end, in ``<home>/cache``.
        Raises MachineError ``jars.unreachable`` with Ivy's words.
        """
        from py4j.protocol import Py4JJavaError

        jvm = self._gateway.jvm
        maven, option = jvm.org.apache.spark.util.MavenUtils, jvm.scala.Option
        out = jvm.java.lang.System.out
        try:
            settings = maven.buildIvySettings(option.empty(), option.apply(str(self._home)), False, out)
            no_exclusions = getattr(maven, "resolveMavenCoordinates$default$5")()
            found = maven.resolveMavenCoordinates(
                ",".join(coordinates), settings, option.empty(), transitive, no_exclusions, False, out
            )
            return [Path(found.apply(index)) for index in range(found.size())]
        except Py4JJavaError as error:
            raise MachineError(
                "jars.unreachable",
                str(error.java_exception.getMessage()).strip(),
                where="the artifact repository of Spark's Ivy",
                do="check the network; a repository of your own goes into DEFAULT_ARTIFACT_REPOSITORY",
            ) from error
