"""One query two ways, each in a process of its own: a pipeline as its DAG submits it, and a job by hand."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from drawdown.jvm.class_archive import driver_class_path
from drawdown.launch.local import submit_conf
from drawdown.metastore import Metastore
from drawdown.spec import load_pipeline
from tests.benchmarks.usage import Usage, used_by
from tests.support.sandbox import Sandbox
from tests.support.spark import ROOT

QUERIES = Path(__file__).parent / "queries"
BY_HAND = Path(__file__).with_name("by_hand.py")
NAMES = 1_000
"""Keys of the static side of a join."""

PIPELINE = """
sources:
  events: {{format: {form}, path: landing, schema: events.ddl, watermark: {{column: at, delay: 1 hour}},
    options: {{maxFilesPerTrigger: {max_files}}}}}
  names: {{format: json, path: names, schema: names.ddl, static: true}}
transform: transform.py
sink: {{format: delta, path: tables/out, schema: out.ddl}}
state: {{partitions: 2}}
"""
TUNED = (
    "spark.sql.shuffle.partitions=2",
    "spark.databricks.delta.snapshotPartitions=2",
    "spark.ui.enabled=false",
    "spark.sql.streaming.stateStore.providerClass="
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled=true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows=false",
)
"""What somebody who knows Spark sets for a short stateful job; without them its defaults hold."""


class Contest:
    """A query of queries/ with a landing folder that both ways read.

    Args:
        form: of the landing files, json or parquet.
        max_files: of one batch.
        memory: of either driver.
        settings: of the job by hand beside Spark's defaults.
    """

    def __init__(
        self,
        folder: Path,
        query: str,
        form: str,
        *,
        max_files: int = 1_000,
        memory: str = "1g",
        settings: tuple[str, ...] = (),
    ) -> None:
        self._folder, self._query, self._form, self._max_files = folder, query, form, max_files
        self._memory, self._settings = memory, settings
        more = f"\nclusters: {{local: {{driver_memory: {memory}}}}}\n"
        self.sandbox = Sandbox(folder / "project", more=more)
        self.landing = self.sandbox.storage / "landing"
        self.landing.mkdir()
        names = [json.dumps({"k": k, "name": f"name {k}"}) for k in range(NAMES)]
        self.sandbox.land("names/all.json", names)
        self._write_pipeline()

    def land_all(self, events: Path) -> None:
        """Every file of a folder, without a copy."""
        for file in events.iterdir():
            (self.landing / file.name).hardlink_to(file)

    def ours(self) -> Usage:
        """A drain, as the task `drain` submits it."""
        project = self.sandbox.project
        conf = submit_conf(project, project.clusters["local"])
        master = conf.pop("spark.master")
        settings = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        job = [str(ROOT / "jobs" / "drain.py"), "--project", str(project.root), "--pipeline", "contest"]
        submit = [sys.executable, "-m", "drawdown.launch.submit", "--master", master, *settings, *job]
        return used_by(submit, self._folder)

    def by_hand(self) -> Usage:
        """The same query by stock spark-submit."""
        said = self._folder / "by_hand"
        command = [
            str(Path(sys.executable).with_name("spark-submit")),
            *("--master", "local[2]", "--driver-memory", self._memory),
            *("--driver-class-path", driver_class_path(ROOT)),
            *(str(BY_HAND), str(QUERIES / f"{self._query}.py"), str(self.landing), self._form),
            str(self._max_files),
            *(str(self.sandbox.storage / "names"), str(said / "checkpoint"), str(said / "table")),
            *self._settings,
        ]
        # Its Java may crash while it ends: RocksDB, left open, logs what it compacts (facebook/rocksdb#5595).
        return used_by(command, self._folder, {"PYSPARK_PYTHON": sys.executable}, done="query seconds")

    def seconds_of_our_query(self) -> float:
        """What the triggers of the newest drain took."""
        with Metastore.open(self.sandbox.project.metastore_url) as metastore:
            run = metastore.runs("contest", limit=1)[0]
        return float(sum(each["duration_ms"].get("triggerExecution", 0) for each in run.progress) / 1_000)

    def _write_pipeline(self) -> None:
        text = (QUERIES / f"{self._query}.py").read_text()
        columns = re.search(r'^COLUMNS = "(.*)"$', text, re.MULTILINE)
        assert columns is not None
        self.sandbox.pipeline(
            "contest",
            PIPELINE.format(form=self._form, max_files=self._max_files),
            transform_py=text,
            events_ddl="id BIGINT, k INT, at TIMESTAMP, v DOUBLE",
            names_ddl="k INT, name STRING",
            out_ddl=columns[1],
        )
        load_pipeline(self.sandbox.project, "contest")


def seconds_of_query(by_hand: Usage) -> float:
    """What the triggers of a job by hand took, as it says."""
    said = re.search(r"^query seconds ([0-9.]+)$", by_hand.said, re.MULTILINE)
    assert said is not None, by_hand.said[-3000:]
    return float(said[1])
