"""Spec files for tests: one pipeline that is right, and ways to make it wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.spec import Pipeline, Project, load_pipeline, load_project

PROJECT = """\
storage_root: storage
brokers:
  default: {bootstrap_servers: "localhost:9092"}
"""
PIPELINE = """\
description: Departures per origin and hour
schedule: "5 * * * *"
owner: flight-data
tags: [example]
sources:
  departures:
    format: csv
    path: landing/departures
    schema: schemas/departures.ddl
    options: {header: true, maxFilesPerTrigger: 20}
    watermark: {column: departed_at, delay: 2 hours, max_future: 1 day}
  airports: {format: csv, path: reference/airports, schema: schemas/departures.ddl, static: true}
transform: transform.sql
sink:
  format: delta
  path: tables/departures_hourly
  schema: schemas/hourly.ddl
  mode: append
  time_column: hour
  publish: audited
state: {provider: rocksdb, partitions: 4, rocksdb.changelogCheckpointing.enabled: true}
drain: {max_batches: null, max_duration: 30 minutes}
replay: {interval: 1 day, lookback: 2 hours, lookahead: 2 hours}
cluster: local
"""
QUALITY = """\
rules:
  - {name: has_origin, check: origin is not null, on_fail: quarantine}
expectations:
  - {type: expect_column_values_to_not_be_null, kwargs: {column: hour}}
"""


class SpecFolders:
    """A project in a temporary folder."""

    def __init__(self, root: Path, project: str = PROJECT) -> None:
        self.root = root
        (root / "include" / "pipelines").mkdir(parents=True)
        self.project_file = root / "include" / "project.yaml"
        self.project_file.write_text(project)

    @property
    def project(self) -> Project:
        return load_project(self.root)

    def add(self, name: str = "hourly", pipeline: str = PIPELINE, quality: str | None = None) -> Path:
        """Writes the folder of a pipeline and returns it."""
        folder = self.root / "include" / "pipelines" / name
        (folder / "schemas").mkdir(parents=True)
        (folder / "pipeline.yaml").write_text(pipeline.replace("tables/departures_hourly", f"tables/{name}"))
        (folder / "transform.sql").write_text("SELECT * FROM departures")
        for schema in ("departures", "hourly"):
            (folder / "schemas" / f"{schema}.ddl").write_text("origin STRING, hour TIMESTAMP\n")
        if quality is not None:
            (folder / "quality.yaml").write_text(quality)
        return folder

    def load(self, name: str = "hourly") -> Pipeline:
        return load_pipeline(self.project, name)

    def refused(self, old: str, new: str) -> SpecError:
        """The error for the right pipeline with one text replaced."""
        assert old in PIPELINE
        self.add(pipeline=PIPELINE.replace(old, new, 1))
        with pytest.raises(SpecError) as caught:
            self.load()
        return caught.value


def line_of(text: str, part: str) -> int:
    """The line, from 1, in which a part first stands."""
    return text[: text.index(part)].count("\n") + 1
