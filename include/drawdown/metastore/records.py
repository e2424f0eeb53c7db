"""What the metastore keeps, as plain immutable records.

All times are timezone-aware UTC datetimes. When a record says that the store sets a time, it uses the
metastore's own clock and ignores the caller's value.
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
    """Rows counted at the source boundary, and what happened to them (rows; late_groups: groups).

    ``duplicates``: rows that a deduplication dropped; known for a run, not for each of its batches.
    ``sessionless``: rows without a window or session, because their event time is NULL, or their computed
    gap is zero, negative or NULL.
    ``lost``: Kafka offsets that were deleted before a run could read them, so not in ``read``.
    ``replayed``: rows that came from the quarantine into a batch; not in ``read`` and ``fed`` again.
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
        """Whether every row read was malformed, too far in the future, quarantined, or fed to the query."""
        return self.read == self.malformed + self.future + self.quarantined + self.fed


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write a pipeline's checkpoint; a greater ``epoch`` fences every smaller one.

    ``side``: a rebuild writes the shadow generation under its own lease.
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
        """Return the name that identifies the lease."""
        return lease_name(self.pipeline, self.side)


def lease_name(pipeline: str, side: Side) -> str:
    """Return the name of the lease of one side of a pipeline."""
    return pipeline if side == "live" else f"{pipeline}#rebuild"


def lease_purpose(name: str) -> str:
    """Return what a lease is for: ``""`` is a pipeline's own, ``replay`` and ``rebuild`` stand beside it.

    Each has epochs of its own, and a rename of the pipeline changes only what stands before it.
    """
    return name.partition("#")[2]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One numbered generation of a pipeline's checkpoint, and the part of the spec that is fixed in it.

    ``state``: live (in use), shadow (of a rebuild), retired; during a swap or a roll back, swapping (a
    shadow) and leaving (the one in use). ``rebuild``: facts about the rebuild that made it, if one did.
    ``judging``: how the rows of its next batch are judged (`Pipeline.judging`), noted before the batch is
    planned; empty if no run has noted it. ``begun_batch``: the last batch that was handed to a sink which
    cannot say what it holds.
    """

    pipeline: str
    generation: int
    path: str
    query_id: str | None
    fingerprint: dict[str, Any]
    created_at: datetime
    state: GenerationState = "live"
    rebuild: dict[str, Any] = field(default_factory=dict)
    judging: dict[str, Any] = field(default_factory=dict)
    begun_batch: int | None = None


FINGERPRINT_FORMAT = 1
"""The format of a fingerprint, stored in it as ``format``; 0 when that key is missing. Increase it with each
change after which an older program would compare values that it does not understand."""

UNCOUNTED = "uncounted"
"""Key in the origin of a run: why its batches are not counted."""


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt to drain, replay or rebuild.

    ``origin`` says what started it (dag_id, dag_run_id, try_number, logical_date, or the command line);
    ``error`` has the keys id, what, where, do; ``progress`` keeps the last entries only; ``notices``,
    each with the keys id, what, about, do, are warnings: the run continued, but somebody should look.
    ``started_at`` and ``ended_at`` are set by the store.

    ``application``: the ApplicationRecord it ran in; None for runs of versions that did not record it, and
    for runs without Spark (a release). ``usage``: its share of the application, None until that has ended or
    if it was killed: ``us`` of the application's time, ``idle_us`` of these in which none of its runs was
    active, ``cpu_us`` (microseconds); ``extra_us``: billed beside, see Price; ``requests``: to object stores,
    by kind, missing without any; ``cores``, ``memory`` (bytes),
    ``peak``, ``start_us`` and ``price`` are the application's.

    ``phases``: microseconds by phase (``open``, ``query``, ``audit``, ``publish``), as far as the run came;
    None for runs of versions that did not measure them.
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
    phases: dict[str, int] | None = None

    @property
    def counted(self) -> bool:
        """Whether ``counts`` and ``batches`` are known: they are written when a run ends, except for a watch
        with Spark's own sink."""
        return self.state != "running" and UNCOUNTED not in self.origin


@dataclass(frozen=True, slots=True)
class Newest:
    """A pipeline's newest run that reads, the last known watermark, and when such a run last succeeded."""

    run: Run
    watermark: datetime | None
    succeeded_at: datetime | None


@dataclass(frozen=True, slots=True)
class ApplicationRecord:
    """One process that ran pipelines: what its cluster profile requested, and what it used.

    ``memory`` is bytes of the driver and the executors; ``price``: currency, core_hour, gb_hour (decimal
    text), and startup_us, minimum_us when they are set; None when the profile has none. ``started_at`` is
    when its first process began, ``seen_at`` its last sign of life; ``ended_at`` is None while it runs or if
    it was killed: then the following are None too. ``start_us``: time until Spark was up, None when Spark was
    not started; ``idle_us``: time in which none of its runs was active; ``cpu_us``: user and system time;
    ``peak_bytes``: the sum of the processes' greatest sizes.
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


ClusterState = Literal["starting", "up", "ending", "unknown"]
"""`unknown`: a `down` has failed, so it is not known whether machines still run."""


@dataclass(frozen=True, slots=True)
class StartedCluster:
    """One cluster that commands of the project started, and that no `down` has ended with success yet.

    ``instance``: made for each start, so that nobody takes it for another one; ``cluster_key``: the run's
    key; ``name``: as the programs know it; ``profile``: its name; ``down``: the program, from the project
    root; ``cores`` and ``memory`` (Spark's notation): of each worker; ``up_by``: until then a call of `up`
    may go on; ``deadline``: when it is to be gone at the latest, which nothing changes; ``answer``: what `up`
    answered, None until it has; ``tries``: how often `down` was called; ``next_try_at``: when it is called
    again, None while the cluster is used.
    """

    instance: str
    cluster_key: str
    name: str
    profile: str
    down: str
    workers: int
    cores: int
    memory: str
    asked_by: dict[str, Any]
    begun_at: datetime
    up_by: datetime
    deadline: datetime
    state: ClusterState = "starting"
    answer: dict[str, Any] | None = None
    tries: int = 0
    next_try_at: datetime | None = None
    last_error: str | None = None


@dataclass(frozen=True, slots=True)
class SeenLease:
    """A lease that was not released: one not in force is that of a run that died without a word."""

    in_force: bool
    holder: str
    since: datetime


@dataclass(frozen=True, slots=True)
class RecordedFigures:
    """What was last recorded of a pipeline: see drawdown.observe.figures for the content, JSON text."""

    pipeline: str
    recorded_at: datetime
    content: str


@dataclass(frozen=True, slots=True)
class RecordedReplay:
    """A replay of one event-time interval; ``about``: the pipelines that read the replaced rows.

    ``origin``: the DAG run that started it, or the command.
    """

    run_id: str
    pipeline: str
    state: RunState
    start: datetime
    end: datetime
    started_at: datetime
    ended_at: datetime | None
    published: int
    about: tuple[str, ...]
    origin: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Announcement:
    """An alert about a pipeline, for one target, until the target knows that it is over.

    ``since``: when it was found; ``told_at``: when the target took it, None before; ``ended_at``: when it was
    found to be over, None while it lasts.
    """

    pipeline: str
    alert: str
    target: str
    since: datetime
    sentence: str
    told_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        return self.pipeline, self.alert, self.target


@dataclass(frozen=True, slots=True)
class SeenBacklog:
    """What waited at a pipeline's sources when a preflight or a run looked; by source, see SourceFinding."""

    pipeline: str
    seen_at: datetime
    by_source: dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RunUsage:
    """The values from which a run's cost is computed; ``rows``: rows read. See Run and ApplicationRecord."""

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
class MeasuredRun:
    """A run that read, with the profile of the application it ran in.

    ``cluster`` is None when no application was recorded, and ``usage`` (see Run) until it has ended.
    """

    run_id: str
    kind: str
    state: RunState
    started_at: datetime
    rows: int
    usage: dict[str, Any] | None
    cluster: str | None


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch: what it read (Spark's offsets per source), what it staged, and its status.

    ``by_source``: counts of each source; of files also how many there were (``files``, ``bytes``), and the
    first of them (``names``, paths in the storage). ``treatment``: the keys of the sink under which it was
    staged (`Sink.treatment`); empty for batches of versions that did not note them.
    """

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
    treatment: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileMark:
    """Shows whether a file that a batch reads is still the same: bytes, milliseconds since 1970 UTC."""

    size: int
    mtime_ms: int


@dataclass(frozen=True, slots=True)
class StagedFile:
    """One file that a batch staged, size in bytes; ``action`` is its Delta add action, {} for other files."""

    table: StagedTable
    path: str
    size: int
    rows: int
    action: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of the audit of a slice, batches first_batch to last_batch; the store sets ``created_at``.

    ``measures``, by name, are numbers with which later slices are compared; {} when nothing was measured.
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

    @property
    def batches(self) -> str:
        """Its batches in words."""
        return _span(self.first_batch, self.last_batch)


def _span(first: int, last: int) -> str:
    return f"batch {first}" if first == last else f"batches {first} to {last}"


@dataclass(frozen=True, slots=True)
class QuarantineDecision:
    """A decision about rows of a quarantine: replay them with one batch, drop them, or leave them to the
    replay of an interval (``interval``), which reads them from the sources again, see `Change`.

    ``keys_path``, relative to the storage root: a parquet file with the row keys that the decision covers.
    ``feeds``, for a replay, by source: what goes into batch ``batch_id``, planned at ``planned_ms``
    (milliseconds since 1970 UTC): ``path``, ``rows``, ``late`` rows and the ``greatest`` event time
    (microseconds since 1970 UTC, or None). ``origin`` says who decided and why, and how rows were chosen and
    patched. For an interval, ``decision_id`` is the id of its change, which shows whether the decision is
    valid, and ``batch_id`` the last batch that readers saw then. The store sets ``decided_at``.
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
    """Batches that one verdict holds, in order, and that verdict."""

    verdict: Verdict
    batches: tuple[Batch, ...]

    @property
    def batch_ids(self) -> list[int]:
        return [batch.batch_id for batch in self.batches]

    @property
    def rows(self) -> int:
        """Return how many rows the batches staged."""
        return sum(batch.counts.staged for batch in self.batches)

    @property
    def key(self) -> str:
        """Return a key that is unique among all slices that were ever held, even after a rewind."""
        return f"{self.verdict.run_id}.{self.batches[0].batch_id}"

    def __str__(self) -> str:
        return _span(self.batch_ids[0], self.batch_ids[-1])


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a sink's table, recorded before its first file is written; see drawdown.changes.

    ``scope`` says what it changes: ``batches`` (ids), ``interval`` (two ISO times), ``generation`` or
    ``version``. ``based_on``: the version of a Delta table from which it was planned, None for other sinks.
    ``place``: the folder of all its files, relative to the storage root; None when the sink's own library
    names them. ``lease`` and ``epoch``: the lease under which it is made. The store sets both times.
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
