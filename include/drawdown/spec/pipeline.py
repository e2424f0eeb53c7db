"""pipeline.yaml: one query, one checkpoint, one output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    StringConstraints,
    model_validator,
)

from drawdown.spec.alerts import OwnAlerts
from drawdown.spec.limits import Limits, SourceLimits
from drawdown.spec.quality import SLICE, Quality, Rule
from drawdown.spec.query_settings import check_conf, check_state
from drawdown.spec.replay import Replay, check_replay
from drawdown.spec.samples import SampleGate, Samples
from drawdown.spec.scheduling.airflow_tasks import OwnTasks
from drawdown.spec.scheduling.schedule import AssetRef, checked_schedule
from drawdown.spec.sink import Sink
from drawdown.spec.source import Source
from drawdown.spec.sql_limits import SqlLimits
from drawdown.spec.upkeep import RowRetention
from drawdown.values.duration import Duration, PositiveDuration
from drawdown.values.model import Approvers, Line, Name, OptionValue, SpecModel, problem
from drawdown.values.path_sets import PathSet
from drawdown.values.paths import fixed_part, overlaps

NEXT = "next"
"""The folder inside a pipeline's own with its next version."""

SHADOWS = "_rebuild"
"""The folder inside a table's own for its shadows. VACUUM ignores names that begin with _."""


class State(SpecModel):
    """The state store, sized before the first run: Spark freezes both in the checkpoint.

    Every further key is Spark's, written without the prefix ``spark.sql.streaming.stateStore.``.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, OptionValue]

    provider: Literal["rocksdb", "hdfs"] = "rocksdb"
    partitions: Annotated[int, Field(ge=1, le=10_000)] = 4

    @property
    def options(self) -> dict[str, str | int | float | bool]:
        """Return the further keys, without Spark's prefix."""
        return dict(self.__pydantic_extra__ or {})

    @model_validator(mode="after")
    def _options_are_known(self) -> State:
        check_state(self.options, self.provider)
        return self


def _known_conf(conf: dict[str, OptionValue]) -> dict[str, OptionValue]:
    check_conf(conf)
    return conf


class DrainBounds(SpecModel):
    """When a drain stops although data is left: after this many batches, or before the first batch after this
    time.

    A run is cancelled when no step and no Spark task has finished for `stuck_after`.
    """

    max_batches: Annotated[int, Field(ge=1)] | None = None
    max_duration: PositiveDuration | None = None
    stuck_after: PositiveDuration | None = Duration.parse("1 hour")


@dataclass(frozen=True)
class Beside:
    """The other files in a pipeline's folder, and inherited settings.

    Attributes:
        next_of: the pipeline that this is the next version of, or ``""``.
        apart, postponed, finishing: see Pipeline.
        samples, approvers, retention, limits: the project's, used if the pipeline has none.
        sql_limits: the project's.
    """

    folder: Path = Path()
    next_of: str = ""
    apart: str = ""
    postponed: tuple[str, ...] = ()
    finishing: bool = False
    quality: Quality = field(default_factory=Quality)
    transform_text: str = ""
    has_listener: bool = False
    samples: Samples | None = None
    approvers: tuple[str, ...] = ()
    retention: RowRetention = field(default_factory=RowRetention)
    limits: Limits = field(default_factory=Limits)
    sql_limits: SqlLimits = field(default_factory=SqlLimits)


# Airflow's maximum length (airflow/models/dag.py); with a longer one it refuses the whole file.
Tag = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,100}$")]


class Pipeline(SpecModel):
    """The spec of a pipeline; the fields are the keys of pipeline.yaml. Made by ``load_pipeline``."""

    description: Annotated[str, StringConstraints(pattern=r"^[^\x00]{0,4000}$")] = ""
    first_name: Name | None = None
    schedule: Annotated[str | list[AssetRef] | None, BeforeValidator(checked_schedule)] = None
    freshness: PositiveDuration | None = None
    partitions: Literal["day", "hour"] | None = None
    group: Name | None = None
    owner: Line = "drawdown"
    tags: list[Tag] = Field(default_factory=list)
    sources: Annotated[dict[Name, Source], Field(min_length=1)]
    transform: Literal["transform.sql", "transform.py"] = "transform.sql"
    sink: Sink
    state: State = State()
    drain: DrainBounds = DrainBounds()
    replay: Replay | None = None
    cluster: Name = "local"
    airflow: OwnTasks = OwnTasks()
    alerts: OwnAlerts = OwnAlerts()
    samples: Samples | None = None
    retention: RowRetention | None = None
    approvers: Approvers | None = None
    watermark_policy: Literal["min", "max"] = "min"
    conf: Annotated[dict[str, OptionValue], AfterValidator(_known_conf)] = Field(default_factory=dict)

    _beside: Beside = PrivateAttr(default_factory=Beside)

    @property
    def name(self) -> str:
        """Return the folder's name; for a next version the name of the pipeline's folder around it."""
        return self._beside.next_of or self._beside.folder.name

    @property
    def name_in_sink(self) -> str:
        """Return the name by which the sink identifies its batches: the pipeline's first name."""
        return self.first_name or self.name

    @property
    def is_next(self) -> bool:
        """Whether this is the next version, read from the folder `next/`."""
        return bool(self._beside.next_of)

    @property
    def apart(self) -> str:
        """Return the path below the live tables that holds a shadow's tables, or ``""``."""
        return self._beside.apart

    @property
    def folder(self) -> Path:
        return self._beside.folder

    @property
    def quality(self) -> Quality:
        """Return quality.yaml's content; empty without the file."""
        return self._beside.quality

    def as_shadow(self, generation: int, steps: Mapping[str, Mapping[str, OptionValue]]) -> Pipeline:
        """Return the pipeline for a rebuild's drain: into tables below its own, with bounded batches.

        Args:
            steps: by source, the options that bound a batch.
        """
        sources = {
            name: source.model_copy(update={"options": {**source.options, **steps.get(name, {})}})
            for name, source in self.sources.items()
        }
        shadow = self.model_copy(update={"sources": sources})
        shadow._beside = replace(self._beside, apart=f"{SHADOWS}/{generation}")
        return shadow

    def treating(self, noted: Mapping[str, str | bool]) -> Pipeline:
        """Return the pipeline as it treats batches staged under these keys of the sink (`Sink.treatment`)."""
        now = self.sink.treatment
        other = [key for key in ("publish", "delivery") if key in noted and noted[key] != now[key]]
        if not other:
            return self
        same = self.model_copy(update={"sink": self.sink.model_copy(update=dict(noted))})
        same._beside = replace(self._beside, postponed=tuple(f"{key}: {now[key]}" for key in other))
        return same

    @property
    def postponed(self) -> tuple[str, ...]:
        """Return the keys of the sink, as the spec has them, that wait until older batches are published."""
        return self._beside.postponed

    @property
    def judging(self) -> dict[str, Any]:
        """Return the keys that decide which rows of a batch go on, as JSON-ready values."""
        return {
            "rules": [rule.model_dump(mode="json") for rule in self.quality.rules],
            "sources": {name: source.judging for name, source in self.streaming_sources.items()},
        }

    def judging_as(self, noted: Mapping[str, Any]) -> Pipeline:
        """Return the pipeline as it judges the rows of a batch that was begun under these keys."""
        sources = {
            name: source.judging_as(noted["sources"][name]) if name in noted["sources"] else source
            for name, source in self.sources.items()
        }
        rules = [Rule.model_validate(rule) for rule in noted["rules"]]
        same = self.model_copy(update={"sources": sources})
        quality = self.quality.model_copy(update={"rules": rules})
        same._beside = replace(self._beside, quality=quality, finishing=True)
        return same

    @property
    def finishing(self) -> bool:
        """Whether a run with it only finishes the batch that an earlier run has begun, see `judging_as`."""
        return self._beside.finishing

    def judged_alone(self) -> Pipeline:
        """Return the pipeline without `history:` expectations: a replayed interval is not the next slice."""
        alone = self.model_copy()
        alone._beside = replace(self._beside, quality=self.quality.model_copy(update={"history": []}))
        return alone

    @property
    def transform_text(self) -> str:
        """Return the text of transform.sql or transform.py."""
        return self._beside.transform_text

    @property
    def listener(self) -> Path | None:
        """Return the path of listener.py, whose class Listener is a StreamingQueryListener; None without
        it."""
        return self.folder / "listener.py" if self._beside.has_listener else None

    @property
    def sample_gate(self) -> SampleGate:
        """Return which values of this pipeline's rows may be shown outside the storage root."""
        samples = self._beside.samples if self.samples is None else self.samples
        return SampleGate(samples, tuple(self.sink.keys))

    def bounds_of(self, source: str) -> SourceLimits:
        """Return how large and how deep what a source delivers may be."""
        return SourceLimits.of(self._beside.limits, self.sources[source].limits)

    @property
    def retained(self) -> RowRetention:
        """Return how long copies of its rows are kept."""
        return self._beside.retention if self.retention is None else self.retention

    @property
    def sql_limits(self) -> SqlLimits:
        """Return how large one result of an SQL function may be."""
        return self._beside.sql_limits

    @property
    def deciders(self) -> tuple[str, ...]:
        """Return the ids of the users who may decide in Airflow; empty: everyone who may edit the DAG run."""
        return self._beside.approvers if self.approvers is None else tuple(self.approvers)

    @property
    def asset_name(self) -> str:
        """Return the Airflow asset that is updated when the pipeline publishes."""
        return asset_name(self.name)

    @property
    def may_be_held(self) -> bool:
        """Whether an audit can hold a slice."""
        return self.sink.publish == "audited" and self.quality.audits

    @property
    def sink_schema_ddl(self) -> str | None:
        return self.sink.schema_ddl

    def source_schema_ddl(self, source: str) -> str | None:
        return self.sources[source].schema_ddl

    @property
    def streaming_sources(self) -> dict[str, Source]:
        return {name: source for name, source in self.sources.items() if not source.static}

    @property
    def static_sources(self) -> dict[str, Source]:
        return {name: source for name, source in self.sources.items() if source.static}

    @property
    def query_tables(self) -> tuple[str, ...]:
        """Return the tables that `queries:` of quality.yaml see: the slice and the static sources."""
        return (SLICE, *self.static_sources)

    @property
    def watermarked_sources(self) -> dict[str, Source]:
        return {name: source for name, source in self.sources.items() if source.watermark}

    @property
    def test_only(self) -> dict[tuple[str, ...], str]:
        """Return what a schedule must not use, by its path in the spec (``("sources", "x")`` or
        ``("sink",)``): why."""
        parts: dict[tuple[str, ...], str | None] = {("sink",): self.sink.test_only}
        parts |= {("sources", name): source.test_only for name, source in self.sources.items()}
        return {at: why for at, why in parts.items() if why}

    def rules_of(self, source: str) -> list[Rule]:
        """Return the row rules of a source; a rule without a source belongs to the only streaming source."""
        return [
            rule
            for rule in self.quality.rules
            if (rule.source or next(iter(self.streaming_sources))) == source
        ]

    @model_validator(mode="after")
    def _fits_together(self) -> Pipeline:
        if not self.streaming_sources:
            raise problem(
                "contradiction",
                "at least one source must be streaming",
                "sources",
                do="remove static: true from one",
            )
        if self.replay:
            check_replay(self.sink, self.sources)
        if self.watermark_policy == "max" and len(self.watermarked_sources) < 2:
            raise problem(
                "no-effect",
                "with fewer than two watermarks min and max are the same",
                "watermark_policy",
                do="remove it",
            )
        if self.partitions and not self.watermarked_sources:
            raise problem(
                "missing-key",
                f"without a watermark no {self.partitions} is ever complete",
                "partitions",
                do="add `watermark: {column: ..., delay: 1 hour}` to a source, or remove `partitions:`",
            )
        if self.schedule is not None:
            for at, why in self.test_only.items():
                raise problem(
                    "test-only", why, *at, "format",
                    do="remove `schedule:`, or use tables, files or Kafka instead",
                )  # fmt: skip
        for name, source in self.sources.items():
            path = source.path_below_root
            if path and self.sink.path and _meets(path, self.sink.path):
                raise problem(
                    "contradiction", "the source would read the sink's own files", "sources", name, "path",
                    do="give source and sink folders that do not contain each other",
                )  # fmt: skip
        self._refuse_other_order()
        return self

    def _refuse_other_order(self) -> None:
        """Refuse two sources of a folder of which Spark does not list all: it knows folders, not sources."""
        for name, source in self.streaming_sources.items():
            key = "arrivals" if source.arrivals else "order"
            for other, of in self.streaming_sources.items():
                whole = source.order == "time" and source.arrivals is None
                if whole or other == name or not of.is_files or of.storage != source.storage:
                    continue
                if overlaps(fixed_part(source.path or ""), fixed_part(of.path or "")):
                    raise problem(
                        "contradiction", f"{other} reads the same folder", "sources", name, key,
                        do="remove the key, or give the sources folders that do not contain each other",
                    )  # fmt: skip


def _meets(pattern: str, folder: str) -> bool:
    return PathSet.of("", pattern).meets(PathSet.one(f"/{folder}"))


def asset_name(pipeline: str) -> str:
    """Return the name of a pipeline's Airflow asset."""
    return f"drawdown.{pipeline}"
