"""What every part of a world stands on: the project, its model, and what may refuse what is done to them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.model.actions import Actions, Ended
from tests.model.looks import Wrong
from tests.model.model import Model, Windows
from tests.model.places import REFUSALS, UNFINISHED
from tests.model.project import COLUMNS, DAY, EVENTS, PROJECT, QUALITY, REACH, SPEC, TRANSFORM, WINDOWS
from tests.model.sinks import DeltaRows


@dataclass
class Ground:
    """What is done, and what came of it.

    Attributes:
        done: what was done so far, to be read and done again.
        ends: how often each rule was accepted, refused and by what, or died.
    """

    root: Path
    spark: SparkSession
    kind: str = "append"
    store_url: str = "sqlite:///metastore.db"
    sink: DeltaRows = field(default_factory=DeltaRows)
    direct: bool = False
    several: bool = False
    actions: Actions = field(init=False)
    model: Model = field(init=False)
    done: list[str] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.actions = Actions(
            self.root, self.spark, PROJECT + self.sink.project, self.store_url, broker=self.sink.broker
        )
        self.model = Model(ordered=self.kind != "unordered", keyed=self.kind == "update")
        self.model.direct, self.model.one_file = self.direct, self.several
        self.columns, self.transform = COLUMNS, self.sink.transform or TRANSFORM
        if self.has_windows:
            self.columns = "at TIMESTAMP, n BIGINT"
            self.transform = WINDOWS[self.kind.removesuffix(", declared")]
            self.model = Windows(
                offset=0.25 * ("offset" in self.kind),
                by_end="by their end" in self.kind,
                hours=1 + ("overlap" in self.kind),
            )
        self.keys, self.tainted = "[at]", False
        if self.kind == "day":
            self.columns, self.transform = f"{COLUMNS}, day DATE", DAY
        self.next_id, self.next_file = 0, 0
        self.kept_from: dict[str, int] = {}
        self.marks: list[tuple[int, Any]] = []
        self.snapshot: Any = None
        self.back_to: Any = None
        self.pending, self.clean, self.in_folder = "", True, 1
        self.nested, self.slept = False, False
        self.failed = False
        self.begun, self.shown_open = False, False
        self.begun_under: bool | None = None
        self.planned: set[int] = set()
        self.compares_quarantine = False
        self.reads = False
        self.delivered: Counter[int] = Counter()
        self.delivered_before: Counter[int] | None = None
        self.undelivered = False
        (self.actions.storage / "landing/events").mkdir(parents=True)
        self._write(1)

    # The pipeline

    @property
    def has_windows(self) -> bool:
        return self.kind.startswith("windows")

    def _write(self, version: int, folder: str = "out") -> None:
        target = self.root / "include/pipelines" / folder
        target.mkdir(parents=True, exist_ok=True)
        sink = {"unordered": ", ordered: false", "update": f", mode: update, keys: {self.keys}"}
        publish = f", publish: {'direct' if self.model.direct else 'audited'}"
        spec = SPEC.replace("KEYS SINK", self.sink.keys + sink.get(self.kind, "") + publish)
        spec = spec.replace("OPTIONS", "maxFilesPerTrigger: 1" if self.several else "")
        if not self.sink.replays:
            spec = spec.partition("replay:")[0]
        spec = spec.replace(" REACH", REACH if self.kind.endswith("declared") else "")
        files = {
            "pipeline.yaml": spec.replace("time_column: at", "time_column: day")
            if self.kind == "day"
            else spec,
            "events.ddl": EVENTS,
            "out.ddl": self.columns,
            "transform.sql": self.transform.format(version=version),
        }
        for name, text in files.items():
            (target / name).write_text(text)
        self._write_quality()

    def _write_quality(self) -> None:
        text = QUALITY.format(bound=100 if self.model.fixed else 90).replace("CHECKED", self.sink.checked)
        if self.has_windows:
            text = text.partition("expectations:")[0]
        for folder in ("out", "out/next"):
            if (self.root / "include/pipelines" / folder).exists():
                (self.root / "include/pipelines" / folder / "quality.yaml").write_text(text)

    def _refused(self, ended: Ended, rule: str) -> Ended:
        if ended.error is not None:
            # Nobody holds the metastore while a sink works: who waits for it would fail.
            busy = self.nested and ended.id == "lease.held"
            # Hours went by amid it, and another took its lease.
            late = self.slept and ended.id == "lease.lost"
            unfinished = self.pending and ended.id in UNFINISHED
            if (
                not busy
                and not late
                and not unfinished
                and not any(
                    ended.id == each or (each.endswith(".") and ended.id.startswith(each))
                    for each in REFUSALS[rule]
                )
            ):
                raise Wrong(f"{rule} is refused for no reason: {ended.error}")
        return ended
