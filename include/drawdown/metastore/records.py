"""What the metastore keeps, as plain immutable records.

All times are timezone-aware UTC datetimes. Where a record says that the store sets one, it is by the
metastore's own clock, and what a caller puts there is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal

RunState = Literal["running", "succeeded", "failed", "crashed", "stopped"]
BatchStatus = Literal["staged", "committed", "passed", "held", "published", "discarded"]
UNPUBLISHED: tuple[BatchStatus, ...] = ("staged", "committed", "passed", "held")
Outcome = Literal["pass", "warn", "fail", "error", "empty"]
StagedTable = Literal["output", "quarantine"]
DecisionKind = Literal["replay", "drop", "interval"]
GenerationState = Literal["live", "shadow", "swapping", "leaving", "retired"]
Side = Literal["live", "shadow"]
ChangeKind = Literal["drain", "publish", "replay", "swap", "rollback", "restore", "compaction", "retention"]
ChangeState = Literal["open", "committed", "given-up"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows accounted for at the source boundary, and what became of them (rows; late_groups: groups).

    ``duplicates``: rows that a deduplication dropped; known of a run, not of each of its batches.
    ``sessionless``: rows that belong to no window or session, because their event time is NULL, or their
    computed gap zero, negative or NULL.
    ``lost``: offsets of Kafka sources that were gone before a run could read them, so not among ``read``.
    ``replayed``: rows that came from the quarantine into a batch; not among ``read`` and ``fed`` again.
    """

    read: int = 0
    malformed: int = 0
    future: int = 0
    quarantined: int = 0
    fed: int = 0
    late: int = 0
    late_groups: int = 0
    duplicates: int = 0
    warned: int = 0
    staged: int = 0
    published: int = 0
    sessionless: int = 0
    lost: int = 0
    replayed: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def balanced(self) -> bool:
        """Every row read is malformed, too far in the future, quarantined, or fed to the transform."""
        return self.read == self.malformed + self.future + self.quarantined + self.fed


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write a pipeline's checkpoint; a greater ``epoch`` fences every smaller one.

    ``side``: a rebuild writes the shadow generation under a lease of its own.
    """

    pipeline: str
    holder: str
    run_id: str
    epoch: int
    acquired_at: datetime
    expires_at: datetime
    side: Side = "live"

    @property
    def name(self) -> str:
        """What tells it from other leases."""
        return lease_name(self.pipeline, self.side)


def lease_name(pipeline: str, side: Side) -> str:
    """Of the lease of one side of a pipeline."""
    return pipeline if side == "live" else f"{pipeline}#rebuild"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One numbered generation of a pipeline's checkpoint and what of the spec is frozen in it.

    ``state``: live, in use; shadow, of a rebuild; swapping, a shadow, and leaving, one in use, while a swap
    or a roll back is under way; retired. ``rebuild``: of one that a rebuild made, what is known of that.
    """

    pipeline: str
    generation: int
    path: str
    query_id: str | None
    fingerprint: dict[str, Any]
    created_at: datetime
    state: GenerationState = "live"
    rebuild: dict[str, Any] = field(default_factory=dict)


FINGERPRINT_FORMAT = 1
"""What a fingerprint's keys and values mean; noted in it as ``format``, one without it is older: 0. Raised
with each change after which a program of before would compare what it does not understand."""

UNCOUNTED = "uncounted"
"""Key in the origin of a run: why its batches are not counted."""


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt to drain, replay or rebuild.

    ``origin`` says who asked (dag_id, dag_run_id, try_number, logical_date, or the command line);
    ``error`` has the keys id, what, where, do; ``progress`` keeps the last entries only; ``notices``,
    each with the keys id, what, about, do, are warnings: the run continued, but somebody should look.
    ``started_at`` and ``ended_at`` are set by the store.

    ``application``: the SparkApplication it ran in; None of a run of before these were noted, and of what
    needs none (a release). ``usage``: its share of that, None until it has ended or when that was killed:
    ``us`` of the application's time, ``idle_us`` of these in which none of its runs went on, ``cpu_us``
    (microseconds); ``cores``, ``memory`` (bytes), ``peak``, ``start_us`` and ``price`` as of the application.
    """

    run_id: str
    pipeline: str
    kind: str = "drain"
    generation: int | None = None
    state: RunState = "running"
    holder: str = ""
    origin: dict[str, Any] = field(default_factory=dict)
    started_at: datetime | None = None
    ended_at: datetime | None = None
    batches: int = 0
    counts: Counts = field(default_factory=Counts)
    watermark: datetime | None = None
    verdict: Outcome | None = None
    stop_reason: str | None = None
    error: dict[str, Any] | None = None
    progress: list[dict[str, Any]] = field(default_factory=list)
    notices: list[dict[str, Any]] = field(default_factory=list)
    application: str | None = None
    usage: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Newest:
    """A pipeline's newest run that reads; the last watermark known, and when one succeeded last."""

    run: Run
    watermark: datetime | None
    succeeded_at: datetime | None


@dataclass(frozen=True, slots=True)
class SparkApplication:
    """One process that ran pipelines: what its cluster profile asked for, and what it used.

    ``memory`` is bytes of the driver and the executors; ``price``: currency, core_hour, gb_hour (decimal
    text), None when the profile has none. ``started_at`` is when its first process began, ``seen_at`` the
    last that was heard of it, ``ended_at`` None of one that goes on or was killed: then the others are None
    too. ``start_us``: until Spark was up, None when none was started; ``idle_us``: while none of its runs
    went on; ``cpu_us``: user and system time; ``peak_bytes``: the processes' greatest sizes, added up.
    """

    application_id: str
    cluster: str
    cores: int
    memory: int
    started_at: datetime
    seen_at: datetime
    price: dict[str, str] | None = None
    ended_at: datetime | None = None
    start_us: int | None = None
    idle_us: int | None = None
    cpu_us: int | None = None
    peak_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RunUsage:
    """What a run's cost is computed from; ``rows``: rows read. See Run and SparkApplication."""

    run_id: str
    pipeline: str
    kind: str
    state: RunState
    started_at: datetime
    ended_at: datetime | None
    rows: int
    application: str | None
    usage: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch: what it read (Spark's offsets per source), what it staged, how far it got."""

    pipeline: str
    generation: int
    batch_id: int
    run_id: str
    epoch: int
    offsets_from: list[Any] = field(default_factory=list)
    offsets_to: list[Any] = field(default_factory=list)
    watermark: datetime | None = None
    counts: Counts = field(default_factory=Counts)
    by_source: dict[str, Any] = field(default_factory=dict)
    status: BatchStatus = "staged"
    verdict: Outcome | None = None


@dataclass(frozen=True, slots=True)
class FileMark:
    """What tells whether a file that a batch reads is still the same: bytes, milliseconds since 1970 UTC."""

    size: int
    mtime_ms: int


@dataclass(frozen=True, slots=True)
class StagedFile:
    """One file a batch staged, size in bytes; ``action`` is its Delta add action, {} for other files."""

    table: StagedTable
    path: str
    size: int
    rows: int
    action: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an audit said of a slice, batches first_batch to last_batch; the store sets ``created_at``.

    ``measures`` is what later slices are compared with, name to number; {} where nothing was measured.
    """

    pipeline: str
    generation: int
    run_id: str
    first_batch: int
    last_batch: int
    outcome: Outcome
    results: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""
    created_at: datetime | None = None
    measures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QuarantineDecision:
    """What was decided about rows of a quarantine: to replay them with one batch, or to drop them; or that
    the replay of an interval (``interval``) brings them from the sources, see `Change`.

    ``keys_path``, relative to the storage root: a parquet file with the row keys that it covers.
    ``feeds``: of a replay by source what goes into batch ``batch_id``, which is planned at ``planned_ms``
    (milliseconds since 1970 UTC): ``path``, ``rows``, ``late`` rows and the ``greatest`` event time
    (microseconds since 1970 UTC, or None). ``origin`` says by whom and why, and how rows were chosen and
    patched. Of an interval ``decision_id`` is the id of its change, which tells whether the decision holds,
    and ``batch_id`` the last batch that readers saw then. The store sets ``decided_at``.
    """

    decision_id: str
    pipeline: str
    kind: DecisionKind
    generation: int
    rows: int
    keys_path: str
    batch_id: int = -1
    planned_ms: int = 0
    feeds: dict[str, dict[str, Any]] = field(default_factory=dict)
    origin: dict[str, Any] = field(default_factory=dict)
    decided_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class HeldSlice:
    """Batches that one verdict holds back, in order, and that verdict."""

    verdict: Verdict
    batches: tuple[Batch, ...]

    @property
    def batch_ids(self) -> list[int]:
        return [batch.batch_id for batch in self.batches]

    @property
    def rows(self) -> int:
        """Rows that the batches staged."""
        return sum(batch.counts.staged for batch in self.batches)

    @property
    def key(self) -> str:
        """One of its own for every slice that is ever held, whatever is rewound."""
        return f"{self.verdict.run_id}.{self.batches[0].batch_id}"

    def __str__(self) -> str:
        first, last = self.batch_ids[0], self.batch_ids[-1]
        return f"batch {first}" if first == last else f"batches {first} to {last}"


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a sink's table, noted before its first file is written; see drawdown.changes.

    ``scope`` says what it changes: ``batches`` (ids), ``interval`` (two ISO times), ``generation`` or
    ``version``. ``based_on``: the version of a Delta table that it was decided on, None for other sinks.
    ``place``: the folder that all its files are in, relative to the storage root; None when the sink's own
    library names them. ``lease`` and ``epoch``: the right it is made under. The store sets both times.
    """

    change_id: str
    pipeline: str
    table: StagedTable
    generation: int
    kind: ChangeKind
    run_id: str
    lease: str = ""
    epoch: int = 0
    scope: dict[str, Any] = field(default_factory=dict)
    based_on: int | None = None
    place: str | None = None
    state: ChangeState = "open"
    begun_at: datetime | None = None
    ended_at: datetime | None = None
