"""Files on local storage get their mode from Java, as Hadoop gives it, and no process is started for it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from drawdown.machine.own_jar import LOCAL_FILES, make_own_jar, own_jar
from tests.support.command_line import DRAWDOWN
from tests.support.spark import ROOT, start_session
from tests.support.workspace import Workspace

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl, watermark: {column: at, delay: 1 hour}}
transform: transform.sql
sink: {format: delta, path: tables/counts, schema: out.ddl}
state: {partitions: 2}
"""
MODES = ("600", "644", "750", "1777")
CONTEXT = "fs.AbstractFileSystem.file.impl"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = start_session()
    yield session
    session.stop()


def test_a_stateful_drain_starts_no_chmod(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "project")
    workspace.pipeline(
        "counts",
        SPEC,
        event_ddl="at TIMESTAMP, k INT",
        out_ddl="hour TIMESTAMP, k INT, n BIGINT",
        transform_sql="SELECT window.start AS hour, k, count(*) AS n"
        " FROM events GROUP BY window(at, '1 hour'), k",
    )
    workspace.land_json("landing/events/0.json", [{"at": "2024-01-01T00:30:00Z", "k": 1}])
    programs, called = tmp_path / "programs", tmp_path / "called"
    programs.mkdir()
    (programs / "chmod").write_text(f'#!/bin/sh\necho "$@" >> {called}\nexec /bin/chmod "$@"\n')
    (programs / "chmod").chmod(0o755)

    run = f'PATH="{programs}:$PATH" "$@" run counts'
    done = subprocess.run(
        ["/bin/sh", "-c", run, "sh", *DRAWDOWN],
        cwd=workspace.root,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert not called.exists(), called.read_text()


def test_modes_are_those_that_hadoop_gives(spark: SparkSession, tmp_path: Path) -> None:
    ours = _modes(spark, tmp_path / "ours", LOCAL_FILES)
    hadoop = {
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.LocalFs",
    }
    theirs = _modes(spark, tmp_path / "theirs", hadoop)
    assert ours == theirs
    assert ours["file 750"] == "750"
    assert ours["file 1777"] == "1777", "with the sticky bit"


def test_the_jar_of_the_same_sources_is_the_same(tmp_path: Path) -> None:
    make_own_jar(tmp_path)
    assert own_jar(tmp_path).read_bytes() == own_jar(ROOT).read_bytes()


def _modes(spark: SparkSession, folder: Path, settings: dict[str, str]) -> dict[str, str]:
    """Of files and folders that Hadoop's two ways to local files make, with their checksum files."""
    jvm: Any = spark.sparkContext._jvm
    conf = jvm.org.apache.hadoop.conf.Configuration()
    for key, value in settings.items():
        conf.set(key.removeprefix("spark.hadoop."), value)
    fs = jvm.org.apache.hadoop.fs.FileSystem.newInstance(conf)
    uri = jvm.java.net.URI("file:///")
    context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(uri, conf)
    assert context.getDefaultFileSystem().getClass().getName() == conf.get(CONTEXT)

    def path(name: str) -> Any:
        return jvm.org.apache.hadoop.fs.Path(str(folder / name))

    for text in MODES:
        mode = jvm.org.apache.hadoop.fs.permission.FsPermission(text)
        fs.mkdirs(path(f"folder {text}"), mode)
        fs.create(path(f"file {text}")).close()
        fs.setPermission(path(f"file {text}"), mode)
        context.mkdir(path(f"folder of the context {text}"), mode, True)
    flag = jvm.java.util.EnumSet.of(jvm.org.apache.hadoop.fs.CreateFlag.CREATE)
    options = spark.sparkContext._gateway.new_array(jvm.org.apache.hadoop.fs.Options.CreateOpts, 0)
    context.create(path("file of the context"), flag, options).close()
    fs.close()
    return {found.name: f"{found.stat().st_mode & 0o7777:o}" for found in sorted(folder.iterdir())}
