"""A pipeline with state whose checkpoint is torn and brought back by the command that the error names.

The project lies in one place and is put back there from a copy for each test: a checkpoint holds the absolute
paths of the files it has read.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from drawdown.errors import DrawdownError
from tests.support.command_line import drawdown
from tests.support.sandbox import Sandbox, multiset

NAME = "hourly"
CHECKPOINT = f"_drawdown/{NAME}/checkpoint-1"
SPEC = """
sources:
  events:
    format: csv
    path: landing/events
    schema: events.ddl
    options: {header: true, maxFilesPerTrigger: 1}
    watermark: {column: at, delay: 10 minutes}
transform: transform.sql
sink: {format: FORMAT, path: tables/hourly, schema: out.ddl, publish: PUBLISH}
state: {partitions: 2}
"""
FILES = {
    "events_ddl": "id INT, at TIMESTAMP",
    "out_ddl": "hour TIMESTAMP, n BIGINT",
    "transform_sql": """
        SELECT window.start AS hour, count(*) AS n
        FROM (SELECT window(at, '1 hour') AS window FROM events) GROUP BY window
    """,
}
HOURS = 2
Result = tuple[Counter[tuple[Any, ...]], Counter[tuple[Any, ...]]]


def project(root: Path, spark: SparkSession, sink: str) -> Sandbox:
    """A project with the pipeline; nothing has arrived."""
    sandbox = Sandbox(root, spark)
    publish = "audited" if sink == "delta" else "direct"
    sandbox.pipeline(NAME, SPEC.replace("FORMAT", sink).replace("PUBLISH", publish), **FILES)
    return sandbox


def land(sandbox: Sandbox, wave: int) -> None:
    """Some hours of events, an hour a file, a file a batch."""
    for hour in range(wave * HOURS, (wave + 1) * HOURS):
        rows = [f"{i},2024-01-01T{hour:02}:{i:02}:00Z" for i in range(5)]
        sandbox.land(f"landing/events/{hour}.csv", ["id,at", *rows], mtime=hour + 1)


def result(sandbox: Sandbox) -> Result:
    """The rows that readers see, and those of the state."""
    spark = sandbox.spark
    assert spark is not None
    sink = "delta" if (sandbox.storage / "tables/hourly/_delta_log").exists() else "parquet"
    rows = (
        sandbox.delta("tables/hourly")
        if sink == "delta"
        else [tuple(r) for r in spark.read.parquet(str(sandbox.storage / "tables/hourly")).collect()]
    )
    state = spark.read.format("statestore").load(str(sandbox.storage / CHECKPOINT))
    return multiset(rows), multiset((str(row.key), str(row.value)) for row in state.collect())


def keep(sandbox: Sandbox) -> Path:
    """A copy of the whole project, times too."""
    return Path(shutil.copytree(sandbox.root, sandbox.root.with_name(f"{sandbox.root.name}-kept")))


def put_back(sandbox: Sandbox, kept: Path) -> None:
    """The project as it was when it was kept; what the session remembers of its tables is forgotten."""
    shutil.rmtree(sandbox.root)
    shutil.copytree(kept, sandbox.root)
    spark = sandbox.spark
    assert spark is not None
    assert spark._jvm is not None
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    spark.catalog.clearCache()


def newest(folder: Path) -> Path:
    """The file with the greatest number in a log folder."""
    return max((path for path in folder.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))


def tear(file: Path) -> None:
    """Leave the first half, as a machine does that loses its power; the checksum is of the whole."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def refused(sandbox: Sandbox, error_id: str) -> DrawdownError:
    """A run ends with this error, and its record says the same."""
    error = sandbox.drain(NAME)[0].error
    assert error is not None
    assert error.id == error_id, str(error)
    with sandbox.metastore() as metastore:
        assert metastore.runs(NAME)[0].error == error.as_dict()
    return error


def command_of(text: str) -> list[str]:
    """The first command in backticks, as words."""
    found = re.search(r"`drawdown ([^`]+)`", text)
    assert found is not None, text
    return shlex.split(found[1])


def checkpoint(sandbox: Sandbox, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """`drawdown checkpoint COMMAND hourly ...`, which ends with this code and without a stack trace."""
    command, *others = words
    done = drawdown(sandbox.root, "checkpoint", command, NAME, *others)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done


def fix(sandbox: Sandbox, text: str) -> subprocess.CompletedProcess[str]:
    """Type the very command that an error names; it succeeds, and leaves a record."""
    words = command_of(text)
    done = drawdown(sandbox.root, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    with sandbox.metastore() as metastore:
        record = metastore.runs(NAME)[0]
        assert (record.kind, record.state) == (words[1], "succeeded")
        assert record.origin["by"]
        assert metastore.holder_of(NAME) is None
    return done


def goes_on_like(sandbox: Sandbox, control: Result) -> None:
    """The next run makes what the control has, and the one after it has nothing to do."""
    sandbox.run(NAME)
    assert result(sandbox) == control
    again = sandbox.drain(NAME)[0]
    assert (again.run, again.error) == (None, None)
