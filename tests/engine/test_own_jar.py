"""Files on local storage get their mode from Java, as Hadoop gives it; no process is started for a file."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from drawdown.jvm.own_jar import LOCAL_FILES, make_own_jar, own_jar
from tests.support.command_line import DRAWDOWN
from tests.support.sandbox import Sandbox
from tests.support.spark import ROOT

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl, watermark: {column: at, delay: 1 hour}}
transform: transform.sql
sink: {format: delta, path: tables/counts, schema: out.ddl}
state: {partitions: 2}
"""
MODES = ("600", "644", "750", "1777")
HADOOP = {
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.LocalFs",
}
CONTEXT = "fs.AbstractFileSystem.file.impl"


@pytest.mark.full
def test_a_stateful_drain_starts_no_program_for_a_file(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path / "project")
    sandbox.pipeline(
        "counts",
        SPEC,
        event_ddl="at TIMESTAMP, k INT",
        out_ddl="hour TIMESTAMP, k INT, n BIGINT",
        transform_sql="SELECT window.start AS hour, k, count(*) AS n"
        " FROM events GROUP BY window(at, '1 hour'), k",
    )
    sandbox.land_json("landing/events/0.json", [{"at": "2024-01-01T00:30:00Z", "k": 1}])
    programs, called = tmp_path / "programs", tmp_path / "called"
    programs.mkdir()
    for name in ("chmod", "readlink", "ls"):
        (programs / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {called}\nexec /bin/{name} "$@"\n')
        (programs / name).chmod(0o755)

    run = f'PATH="{programs}:$PATH" "$@" run counts'
    done = subprocess.run(
        ["/bin/sh", "-c", run, "sh", *DRAWDOWN],
        cwd=sandbox.root,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert not called.exists(), called.read_text()


def test_modes_are_those_that_hadoop_gives(spark: SparkSession, tmp_path: Path) -> None:
    ours = _modes(spark, tmp_path / "ours", LOCAL_FILES)
    theirs = _modes(spark, tmp_path / "theirs", HADOOP)
    assert ours == theirs
    assert ours["file 750"] == "750"
    assert ours["file 1777"] == "1777", "with the sticky bit"


def test_a_link_is_what_hadoop_says_it_is(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("four")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    for name in ("file", "link", "dangling"):
        ours, theirs = (_link_status(spark, tmp_path / name, settings) for settings in (LOCAL_FILES, HADOOP))
        assert ours == theirs
    assert not _link_status(spark, tmp_path / "file", LOCAL_FILES)["link"]


def test_the_jar_of_the_same_sources_is_the_same(tmp_path: Path) -> None:
    (tmp_path / ".drawdown").mkdir()
    for folder in ("jars", "object-storage-jars", "google-storage-jars"):
        (tmp_path / ".drawdown" / folder).symlink_to(ROOT / ".drawdown" / folder)
    make_own_jar(tmp_path)
    assert own_jar(tmp_path).read_bytes() == own_jar(ROOT).read_bytes()


def _modes(spark: SparkSession, folder: Path, settings: dict[str, str]) -> dict[str, str]:
    """Of files and folders that Hadoop's two ways to local files make, with their checksum files."""
    jvm: Any = spark.sparkContext._jvm
    conf = _conf(jvm, settings)
    fs = jvm.org.apache.hadoop.fs.FileSystem.newInstance(conf)
    context = _context(jvm, conf)

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


def _link_status(spark: SparkSession, path: Path, settings: dict[str, str]) -> dict[str, object]:
    """What FileContext says of a path without following it."""
    jvm: Any = spark.sparkContext._jvm
    status = _context(jvm, _conf(jvm, settings)).getFileLinkStatus(jvm.org.apache.hadoop.fs.Path(str(path)))
    link = status.isSymlink()
    target = status.getSymlink().toString() if link else ""
    return {"link": link, "target": target, "length": status.getLen(), "path": status.getPath().toString()}


def _conf(jvm: Any, settings: dict[str, str]) -> Any:
    conf = jvm.org.apache.hadoop.conf.Configuration()
    for key, value in settings.items():
        conf.set(key.removeprefix("spark.hadoop."), value)
    return conf


def _context(jvm: Any, conf: Any) -> Any:
    context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(jvm.java.net.URI("file:///"), conf)
    assert context.getDefaultFileSystem().getClass().getName() == conf.get(CONTEXT)
    return context
