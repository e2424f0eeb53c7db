"""The jar of Drawdown's own few Java classes, compiled at set-up.

Some write checkpoints and Delta's log in object stores by conditional puts, list buckets from a name on,
or count requests. The others save processes:
without its native library, which is in no package registry, Hadoop starts ``chmod`` for every file and folder
that it creates on local storage, and ``readlink`` for renames. The compiler is Janino, which Spark includes,
so set-up needs no JDK. A driver on another machine does not have this jar, and works as plain Hadoop does.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from drawdown.errors import MachineError
from drawdown.jvm.installation import how_to_set_up
from drawdown.jvm.jars import CONNECTORS, GOOGLE_STORAGE, OBJECT_STORAGE, jar_paths
from drawdown.jvm.java import require_java
from drawdown.jvm.spark_home import spark_home

SOURCES = Path(__file__).parents[1]
LOCAL_FILES = {
    "spark.hadoop.fs.file.impl": "drawdown.LocalFiles",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "drawdown.LocalFilesContext",
}
"""Settings of an application whose processes all have the jar on their class path."""
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def own_jar(project_root: Path) -> Path:
    """Return the jar's path; MachineError ``jars.missing`` if it is missing."""
    path = _wanted(project_root)
    if not path.exists():
        raise MachineError(
            "jars.missing",
            "the jar of Drawdown's own classes is not there",
            where=str(path),
            do=how_to_set_up(),
        )
    return path


def is_made(project_root: Path) -> bool:
    """Whether the jar of these sources for this Spark exists."""
    return _wanted(project_root).exists()


def make_own_jar(project_root: Path) -> None:
    """Compile and pack the classes, replacing any other jar.

    Raises:
        MachineError: ``java.*``, or ``setup.own-jar`` with the compiler's message.
    """
    target = _wanted(project_root)
    target.parent.mkdir(parents=True, exist_ok=True)
    for stale in target.parent.iterdir():
        stale.unlink()
    with tempfile.TemporaryDirectory(prefix="drawdown-classes-") as scratch:
        _compile(project_root, Path(scratch))
        aside = target.with_suffix(".making")
        _pack(Path(scratch), aside)
    aside.replace(target)


def _compile(project_root: Path, into: Path) -> None:
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
    from py4j.protocol import Py4JJavaError

    jars = spark_home() / "jars"
    port, secret, java = launch_gateway(
        classpath=f"{jars}/*",
        jarpath=str(next(jars.glob("py4j-*.jar"))),
        java_path=str(require_java().executable),
        javaopts=["-XX:TieredStopAtLevel=1"],
        enable_auth=True,
        die_on_exit=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret))
    try:
        compiler = gateway.jvm.org.codehaus.janino.CompilerFactory().newCompiler()
        compiler.setDestinationDirectory(gateway.jvm.java.io.File(str(into)), False)
        folders = (CONNECTORS, OBJECT_STORAGE, GOOGLE_STORAGE)
        others = [path for folder in folders for path in jar_paths(project_root / ".drawdown", folder)]
        compiler.setClassPath(_files(gateway, [*sorted(jars.glob("*.jar")), *others]))
        compiler.compile(_files(gateway, _sources()))
    except Py4JJavaError as cause:
        raise MachineError(
            "setup.own-jar",
            f"the Java classes of Drawdown do not compile: {_first_cause(cause.java_exception)}",
            where=str(SOURCES),
            do="install the version of pyspark that Drawdown asks for: pip check says which",
        ) from cause
    finally:
        gateway.shutdown()
        java.kill()
        java.wait()
        java.stdin.close()  # a thread of py4j's closes its output


def _first_cause(thrown: Any) -> str:
    while (deeper := thrown.getCause()) is not None:
        thrown = deeper
    return str(thrown.toString())


def _files(gateway: Any, paths: list[Path]) -> Any:
    file = gateway.jvm.java.io.File
    array = gateway.new_array(file, len(paths))
    for number, path in enumerate(paths):
        array[number] = file(str(path))
    return array


def _pack(classes: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w") as jar:
        for path in sorted(classes.rglob("*.class")):
            # Without the time, so that the same sources make the same jar.
            jar.writestr(zipfile.ZipInfo(str(path.relative_to(classes)), _LONG_AGO), path.read_bytes())


def _wanted(project_root: Path) -> Path:
    """Return the jar's path, named by the sources and the version of Hadoop they extend."""
    hadoop = sorted(path.name for path in (spark_home() / "jars").glob("hadoop-client-*.jar"))
    parts = [*hadoop, *(path.read_text() for path in _sources())]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return project_root / ".drawdown" / "own-jar" / f"drawdown-{key}.jar"


def _sources() -> list[Path]:
    return sorted(SOURCES.rglob("*.java"))
