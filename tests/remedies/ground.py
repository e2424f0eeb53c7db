"""One project in one place, made again for each state; what many states begin with is kept as a copy."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from drawdown.errors import DrawdownError
from tests.remedies.prompt import Said, typed
from tests.support.recovering import put_back
from tests.support.sandbox import Sandbox

NAME = "orders"
FOLDER = f"include/pipelines/{NAME}"
TABLE = f"tables/{NAME}"
CHECKPOINT = f"_drawdown/{NAME}/checkpoint-1"
SPEC = """
sources:
  events:
    format: csv
    path: landing/events
    schema: events.ddl
    options: {header: true, maxFilesPerTrigger: 1}
transform: transform.sql
sink: {format: delta, path: tables/orders, schema: out.ddl}
state: {partitions: 2}
"""
FILES = {
    "events_ddl": "id INT, at TIMESTAMP",
    "out_ddl": "id INT",
    "transform_sql": "SELECT id FROM events\n",
}
FAILS = "expectations: [{type: expect_table_row_count_to_be_between, kwargs: {max_value: 0}}]\n"
RULE = "rules: [{name: small, check: id < 90, on_fail: quarantine}]\n"


class Ground:
    """The place, and what is done there. The rows of the pipeline are ids; a file is a batch."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self.spark = root, spark
        self.sandbox: Sandbox
        self._bases: dict[str, tuple[Sandbox, Path]] = {}
        self._landed = 0

    def empty(self, more: str = "") -> Sandbox:
        """A project without pipelines; `more` are lines of project.yaml."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.sandbox, self._landed = Sandbox(self.root, self.spark, more=more), 0
        self.forget()
        return self.sandbox

    def base(self, name: str, make: Callable[[], Any]) -> Sandbox:
        """What `make` makes, the second time from its copy."""
        if name not in self._bases:
            make()
            kept = self.root.with_name(f"base-{name}")
            shutil.copytree(self.root, kept)
            self._bases[name] = self.sandbox, kept
        self.sandbox, kept = self._bases[name]
        put_back(self.sandbox, kept)
        self._landed = len(list((self.sandbox.storage / "landing/events").glob("*.csv")))
        return self.sandbox

    def new(self, spec: str = SPEC, **files: str) -> Sandbox:
        """A project with the pipeline, which has never run."""
        self.empty()
        self.pipeline(spec, **files)
        return self.sandbox

    def drained(self) -> Sandbox:
        """Two runs of one row each: 1 and 2."""
        return self.base("drained", self._drain_twice)

    def snapped(self) -> Sandbox:
        """The same, with a snapshot after the first run."""
        return self.base("snapped", lambda: self._drain_twice(snapshot=True))

    def _drain_twice(self, snapshot: bool = False) -> None:
        self.new()
        self.land(1)
        self.sandbox.run(NAME)
        if snapshot:
            self.well(f"checkpoint snapshot {NAME}")
        self.land(2)
        self.sandbox.run(NAME)

    def held(self) -> Sandbox:
        """Row 1 is published; row 2 is held; the expectation is corrected since."""
        return self.base("held", self._hold)

    def _hold(self) -> None:
        self.new()
        self.land(1)
        self.sandbox.run(NAME)
        self.quality(FAILS)
        self.land(2)
        assert self.refused("audit.fail")
        self.quality("rules: []\n")

    def pipeline(self, spec: str = SPEC, **files: str) -> None:
        self.sandbox.pipeline(NAME, spec, **{**FILES, **files})

    def quality(self, text: str) -> None:
        (self.root / FOLDER / "quality.yaml").write_text(text)

    def land(self, *ids: int) -> Path:
        self._landed += 1
        rows = [f"{id},2024-01-01T00:00:{id % 60:02}Z" for id in ids]
        return self.sandbox.land(f"landing/events/{self._landed}.csv", ["id,at", *rows], mtime=self._landed)

    def ids(self) -> Counter[int]:
        """What readers of the table see."""
        if not (self.sandbox.storage / TABLE / "_delta_log").exists():
            return Counter()
        return Counter(row[0] for row in self.sandbox.delta(TABLE))

    def forget(self) -> None:
        """What the session remembers of tables in this place."""
        assert self.spark._jvm is not None
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        self.spark.catalog.clearCache()

    def refused(self, id: str, name: str = NAME) -> DrawdownError:
        """The error with which a run ends."""
        self.forget()
        error = self.sandbox.drain(name)[0].error
        assert error is not None, f"the run went well, wanted {id}"
        assert error.id == id, str(error)
        return error

    def type(self, words: str | tuple[str, ...]) -> Said:
        return typed(self.root, words, self.spark)

    def well(self, words: str | tuple[str, ...]) -> Said:
        """A command that succeeds."""
        said = self.type(words)
        assert said.code == 0, said.text
        return said

    def fails(self, id: str, words: str) -> DrawdownError:
        """A command that ends with this error."""
        said = self.type(words)
        assert said.code != 0, said.text
        assert said.error.id == id, said.text
        return said.error

    @property
    def checkpoint(self) -> Path:
        return self.sandbox.storage / CHECKPOINT
