"""One pipeline on any kind of sink whose rows are ids, so that each can be told from the others."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.support.kill_matrix import FILES, KINDS, NAME, SPEC, Kind
from tests.support.sandbox import Sandbox

TOKENS = """
import json, os

def write(batch, token):
    place = f"FOLDER/{token.batch_id}.json"
    if os.path.exists(place):
        batch.count()
        return
    with open(place, "w") as out:
        json.dump([row.id for row in batch.collect()], out)
"""


def _given(sandbox: Sandbox) -> Counter[tuple[Any, ...]]:
    return Counter(
        (id,) for file in (sandbox.root / "given").glob("*.json") for id in json.loads(file.read_text())
    )


FAN_OUT = Kind("foreach_batch", "format: foreach_batch, function: sink.py", _given)
SINKS = {
    "delta append": KINDS["delta append direct"],
    "delta update": KINDS["delta update direct"],
    "parquet": KINDS["parquet files"],
    "postgres": replace(KINDS["postgres append"], spec=KINDS["postgres append"].spec + ", publish: direct"),
    "kafka": KINDS["kafka"],
    "foreach_batch": FAN_OUT,
}
RULE = "rules: [{name: small, check: id < LIMIT, on_fail: quarantine}]\n"


class Rows:
    """One pipeline, row by row, on a kind of sink."""

    def __init__(
        self, kind: str, root: Path, spark: SparkSession, server: Any, how: Kind | None = None
    ) -> None:
        self.kind = how or SINKS[kind]
        if kind == "foreach_batch":
            self.sandbox = Sandbox(root, spark)
            (root / "given").mkdir()
            files = {**FILES, "sink_py": TOKENS.replace("FOLDER", str(root / "given"))}
            del files["out_ddl"]
            self.sandbox.pipeline(NAME, SPEC.replace("SINK", self.kind.spec), **files)
        else:
            self.sandbox = self.kind.project(root, spark, server)
        self.folder = root / "include" / "pipelines" / NAME
        sql = "SELECT id FROM events"
        if kind == "kafka":
            sql = "SELECT string(id) AS key, string(id) AS value FROM events"
        (self.folder / "transform.sql").write_text(sql)
        if (self.folder / "out.ddl").exists():
            (self.folder / "out.ddl").write_text("id INT")
        spec = self.folder / "pipeline.yaml"
        spec.write_text(spec.read_text().replace("keys: [hour]", "keys: [id]"))
        self.landed = 0

    def rule(self, limit: int) -> None:
        (self.folder / "quality.yaml").write_text(RULE.replace("LIMIT", str(limit)))

    def land(self, *ids: int) -> None:
        self.landed += 1
        rows = [f"{id},2024-01-01T00:00:00Z" for id in ids]
        self.sandbox.land(f"landing/events/{self.landed}.csv", ["id,at", *rows], mtime=self.landed)

    def in_sink(self) -> Counter[int]:
        return Counter({int(row[-1]): times for row, times in self.kind.rows(self.sandbox).items()})

    def set_aside(self) -> Counter[int]:
        if not (self.sandbox.storage / "quarantine" / NAME).exists():
            return Counter()
        return Counter(int(json.loads(row["parsed"])["id"]) for row in self.sandbox.quarantined(NAME))

    def until_drained(self) -> None:
        for _ in range(3):
            [report] = self.sandbox.drain(NAME)
            assert report.error is None, report.error
