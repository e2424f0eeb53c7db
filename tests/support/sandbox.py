"""A project of its own for one test: write pipelines and landing files, drain, read the results.

Every drain goes through drawdown.application.SparkApplication, the code that the CLI and the Airflow job run.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import duckdb
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from drawdown.application import SparkApplication
from drawdown.application.watcher import Report
from drawdown.metastore import Metastore
from drawdown.metastore.records import Run
from drawdown.spec import Pipeline, Project, load_pipeline, load_project
from drawdown.workspace import Workspace

_PROJECT = """
storage_root: storage
metastore: sqlite:///metastore.db
brokers:
  default: {{bootstrap_servers: "{kafka}"}}
"""


class Sandbox:
    """A project folder under a test's temporary folder; `more` are further lines of project.yaml."""

    def __init__(
        self, root: Path, spark: SparkSession | None = None, kafka: str = "localhost:1", more: str = ""
    ) -> None:
        self.root = root
        self.spark = spark
        (root / "include" / "pipelines").mkdir(parents=True)
        (root / "include" / "project.yaml").write_text(_PROJECT.format(kafka=kafka) + more)
        self.storage = root / "storage"
        self.storage.mkdir()

    @property
    def project(self) -> Project:
        return load_project(self.root)

    def metastore(self) -> Metastore:
        return Metastore.open(self.project.metastore_url)

    def pipeline(self, name: str, spec: str, **files: str) -> Pipeline:
        """Write a pipeline folder. `files`: transform_sql=..., quality_yaml=..., flights_ddl=..."""
        folder = self.root / "include" / "pipelines" / name
        folder.mkdir(exist_ok=True)
        (folder / "pipeline.yaml").write_text(dedent(spec))
        for key, text in files.items():
            stem, _, suffix = key.rpartition("_")
            (folder / f"{stem}.{suffix}").write_text(dedent(text))
        return load_pipeline(self.project, name)

    def land(self, path: str, text: str | Iterable[str], mtime: float | None = None) -> Path:
        """One file that arrives whole, under the storage root."""
        target = self.storage / path
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.parent / f".{target.name}.tmp"
        aside.write_text(text if isinstance(text, str) else "".join(f"{line}\n" for line in text))
        if mtime is not None:
            os.utime(aside, (mtime, mtime))
        aside.rename(target)
        return target

    def land_json(self, path: str, rows: Iterable[dict[str, Any]], mtime: float | None = None) -> Path:
        return self.land(path, [json.dumps(row) for row in rows], mtime)

    def drain(self, *names: str) -> list[Report]:
        """One scheduled run over these pipelines; each query has a session of its own."""
        project = self.project
        with Metastore.open(project.metastore_url) as metastore:
            application = SparkApplication(Workspace(project, metastore), session=self.spark)
            return application.drain_all([load_pipeline(project, name) for name in names])

    def run(self, name: str) -> Run:
        """Drain one pipeline that has work; raises its error."""
        report = self.drain(name)[0]
        if report.error is not None:
            raise report.error
        assert report.run is not None, f"{name} had nothing to do"
        return report.run

    def delta(self, path: str) -> list[tuple[Any, ...]]:
        """All rows of a Delta table, sorted, read without Spark."""
        table = DeltaTable(str(self.storage / path)).to_pyarrow_table()
        return sorted_rows(duckdb.from_arrow(table).fetchall())

    def quarantined(self, pipeline: str) -> list[dict[str, Any]]:
        """Rows set aside, by payload."""
        rows = DeltaTable(str(self.storage / "quarantine" / pipeline)).to_pyarrow_table().to_pylist()
        return sorted(rows, key=lambda row: str(row["payload"]))

    def everything(self) -> set[str]:
        """Every file and folder under the storage root, with the files' sizes and times."""
        files = {f"{path} {size} {mtime}" for path, (size, mtime) in self.snapshot().items()}
        return files | {str(p.relative_to(self.storage)) for p in self.storage.rglob("*") if p.is_dir()}

    def read(self, path: str) -> bytes:
        """The content of a file under the storage root."""
        return (self.storage / path).read_bytes()

    def snapshot(self) -> dict[str, tuple[Any, ...]]:
        """Every file under the storage root with size and mtime: equal snapshots mean nothing was touched."""
        return {
            str(p.relative_to(self.storage)): (p.stat().st_size, p.stat().st_mtime_ns)
            for p in sorted(self.storage.rglob("*"))
            if p.is_file()
        }


def sorted_rows(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: tuple(str(value) for value in row))


def multiset(rows: Iterable[Sequence[Any]]) -> Counter[tuple[Any, ...]]:
    """Rows with their multiplicity: distinct() would hide duplicates."""
    return Counter(tuple(row) for row in rows)
