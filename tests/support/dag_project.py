"""A small project with a dags folder of its own, as Airflow and its tasks see one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROJECT = """
storage_root: storage
metastore: sqlite:///metastore.db
airflow: {{pool: drawdown, retries: {retries}, retry_delay: 2 minutes, execution_timeout: 1 hour}}
{more}
"""

PIPELINE = """
description: Events as they come
owner: {owner}
tags: [test]
sources:
  events:
    format: json
    path: landing/{name}
    schema: schemas/events.ddl
    options: {{maxFilesPerTrigger: 1}}
transform: transform.sql
sink: {{format: delta, path: tables/{name}, schema: schemas/events.ddl, publish: audited}}
state: {{partitions: 1}}
{more}
"""
FAILS_ON_TWO = """
expectations:
  - {type: expect_column_values_to_not_be_in_set, kwargs: {column: id, value_set: [2, 4, 6]}}
"""


class DagProject:
    """Pipelines that copy JSON events into a Delta table, one file a batch."""

    def __init__(self, root: Path, more: str = "", retries: int = 2) -> None:
        self.root = root
        self.storage = root / "storage"
        (root / "include" / "pipelines").mkdir(parents=True)
        (root / "include" / "project.yaml").write_text(PROJECT.format(more=more, retries=retries))
        (root / "dags").mkdir()
        shutil.copy(ROOT / "dags" / "drawdown.py", root / "dags")
        (root / "jobs").symlink_to(ROOT / "jobs")
        (root / ".drawdown").mkdir()
        for shared in ("jars", "own-jar", "object-storage-jars", "google-storage-jars", "archive"):
            if (ROOT / ".drawdown" / shared).exists():
                (root / ".drawdown" / shared).symlink_to(ROOT / ".drawdown" / shared)

    def pipeline(self, name: str, more: str = "", owner: str = "tester", quality: str = "") -> Path:
        """Write a pipeline folder; `more` is YAML added to its spec."""
        folder = self.root / "include" / "pipelines" / name
        (folder / "schemas").mkdir(parents=True)
        (folder / "schemas" / "events.ddl").write_text("id BIGINT, name STRING")
        (folder / "transform.sql").write_text("select id, name from events")
        (folder / "pipeline.yaml").write_text(PIPELINE.format(name=name, owner=owner, more=more))
        if quality:
            (folder / "quality.yaml").write_text(quality)
        return folder

    def land(self, pipeline: str, *ids: int) -> None:
        """One file for each id, each arriving whole."""
        landing = self.storage / "landing" / pipeline
        landing.mkdir(parents=True, exist_ok=True)
        for number in ids:
            aside = landing / f".{number}.tmp"
            aside.write_text(json.dumps({"id": number, "name": f"event {number}"}) + "\n")
            aside.rename(landing / f"{number:06d}.json")

    def ids(self, pipeline: str) -> list[int]:
        """What readers of the sink see, sorted; duplicates stay."""
        from deltalake import DeltaTable

        table = DeltaTable(str(self.storage / "tables" / pipeline)).to_pyarrow_table()
        return sorted(table.column("id").to_pylist())
