"""Reads quarantined rows: their content, and whether each is open, replayed or dropped.

Read from the Delta table by delta-rs, without Spark, into this process's memory. The table never changes:
decisions in the metastore, each with a file of row keys, record what happened to the rows. A key covers
everything that distinguishes a row; identical rows share one key and are always chosen together.
"""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any, Literal
from urllib.parse import unquote

from drawdown.delta.history import DeltaHistory
from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import RefusedError
from drawdown.layout import replayed_rows_of
from drawdown.quarantine.other_bytes import content_of
from drawdown.quarantine.row_keys import IDENTIFYING, keys_of
from drawdown.sinks.locations import output_uri, quarantine_uri
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage
from drawdown.storage.parquet_file import read_parquet
from drawdown.workspace import Workspace

RowState = Literal["open", "fed", "replaying", "replayed", "dropped"]
STATES: Mapping[RowState, str] = {
    "open": "waits for a decision",
    "fed": "a late row: a copy, the transform has received the row itself",
    "replaying": "is part of a batch or interval that is not committed yet: the next run completes it",
    "replayed": "went into a later batch, or into the replay of its interval",
    "dropped": "dropped by a decision",
}
_BETWEEN = "\x1f"
"""Between the reasons of a row when they are one text: no name in YAML holds it."""

LATE, DRIFT, MALFORMED = "late", "drift", "malformed"

COLUMNS = (
    "source", "reasons", "payload", "parsed", "event_time", "file", "topic", "partition", "offset",
    "generation", "batch_id", "run_id", "set_aside_at", "raw", "read_as",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SetAside:
    """One row; `decision_id` is the decision that covers it. Columns that an older table lacks are None.

    Attributes:
        raw: the record's bytes if they are not valid UTF-8; `payload` shows them with replacement characters.
        read_as: the source's columns and types when the row was read, as Spark's JSON of a schema.
    """

    key: str
    state: RowState
    decision_id: str | None
    source: str
    reasons: tuple[str, ...]
    payload: str | None
    parsed: str | None
    event_time: datetime | None
    file: str | None
    topic: str | None
    partition: int | None
    offset: int | None
    generation: int | None
    batch_id: int
    run_id: str
    set_aside_at: datetime | None
    raw: bytes | None
    read_as: str | None = None

    @property
    def values(self) -> dict[str, Any]:
        """For a JSON document: `raw` in Base64."""
        raw = None if self.raw is None else base64.b64encode(self.raw).decode()
        return {**asdict(self), "raw": raw}


@dataclass(frozen=True, slots=True)
class Alike:
    """How many rows share all of these.

    Attributes:
        file: None unless it was asked for.
    """

    rows: int
    state: RowState
    source: str
    reasons: tuple[str, ...]
    generation: int | None
    batch_id: int
    day: date | None
    file: str | None = None


@dataclass(frozen=True)
class Choice:
    """A selection of rows: values of one filter combine with OR, different filters with AND.

    Attributes:
        files: whole names or last parts of them.
    """

    rules: tuple[str, ...] = ()
    batches: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    states: tuple[str, ...] = ()

    def fits(self, row: SetAside | Alike) -> bool:
        return (
            (not self.rules or bool(set(self.rules) & set(row.reasons)))
            and (not self.batches or row.batch_id in self.batches)
            and (not self.files or any(_is_file(row.file, name) for name in self.files))
            and (not self.states or row.state in self.states)
        )

    def replays(self, row: SetAside) -> bool:
        """Whether a replay of this selection asks for a row.

        A file with drifted columns was read with the wrong ones: its rows are replayed only if the reason is
        named.
        """
        return row.state == "open" and self.fits(row) and (DRIFT in self.rules or DRIFT not in row.reasons)

    @property
    def said(self) -> dict[str, Any]:
        """Return the selection for the run record."""
        named = {"rules": self.rules, "batches": self.batches, "files": self.files}
        return {name: list(values) for name, values in named.items() if values}


def require_table(workspace: Workspace, pipeline: Pipeline) -> None:
    """Raise RefusedError ``quarantine.none`` before the first run of a pipeline."""
    table_of(workspace.project, pipeline)


def set_aside(workspace: Workspace, pipeline: Pipeline) -> list[SetAside]:
    """Return every visible row of a pipeline's quarantine, oldest batch first.

    Raises:
        RefusedError: ``quarantine.none``: there is no table yet.
        SourceError: it cannot be read.
    """
    table = table_of(workspace.project, pipeline)
    storage = workspace.storage
    covered = decided_rows(workspace, pipeline)
    content = content_of(storage, table, COLUMNS)
    rows = [
        row_of(key, values, covered)
        for key, values in zip(keys_of(content), content.to_pylist(), strict=True)
    ]
    return sorted(rows, key=lambda row: (row.generation or 0, row.batch_id, row.source, row.key))


def counted(workspace: Workspace, pipeline: Pipeline, choice: Choice) -> list[Alike]:
    """Count the chosen rows of `set_aside`, grouped by the attributes that the listing shows.

    Uses Arrow and reads only the columns needed for counting. Raises as `set_aside`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    table = table_of(workspace.project, pipeline)
    storage = workspace.storage
    covered = decided_rows(workspace, pipeline)
    by = ["source", "reasons", "generation", "batch_id", *(["file"] if choice.files else [])]
    # Whether a decision covers a row, its key says, which is made of all that the row holds.
    wanted = {*by, "set_aside_at", *(IDENTIFYING if covered else ())}
    content = content_of(storage, table, sorted(wanted))
    for name in wanted - set(content.column_names):
        content = content.append_column(name, pa.nulls(content.num_rows))
    reasons = pc.binary_join(content["reasons"].cast(pa.list_(pa.string())), _BETWEEN)
    columns: dict[str, Any] = {name: content[name] for name in by} | {"reasons": reasons}
    columns["day"] = content["set_aside_at"].cast(pa.date32())
    if covered:
        decided = map(covered.get, keys_of(content))
        columns["state"] = pa.array([each and each[0] for each in decided], pa.string())
    names = list(columns)
    groups = pa.table(columns).group_by(names).aggregate([([], "count_all")])
    return [alike for values in groups.to_pylist() if choice.fits(alike := _alike(values))]


def _alike(values: dict[str, Any]) -> Alike:
    joined = values.pop("reasons")
    reasons = tuple(joined.split(_BETWEEN)) if joined else ()
    state: RowState = values.pop("state", None) or _undecided(reasons)
    return Alike(values.pop("count_all"), reasons=reasons, state=state, **values)


def table_of(project: Project, pipeline: Pipeline) -> DeltaTableFiles:
    """Return the table. Raises RefusedError ``quarantine.none`` before the first run."""
    table = DeltaTableFiles(quarantine_uri(project, pipeline))
    if not table.exists():
        raise RefusedError(
            "quarantine.none",
            f"{pipeline.name} has no quarantine yet: it has never run",
            where=table.uri,
            do=f"`drawdown run {pipeline.name}`",
        )
    return table


def counts(found: Iterable[Alike]) -> list[dict[str, Any]]:
    """Rows per rule, batch and day (UTC), by state; a row that broke two rules counts for both."""
    groups: dict[tuple[Any, ...], Counter[str]] = {}
    for alike in found:
        for reason in alike.reasons or ("",):
            group = (reason, alike.source, alike.generation, alike.batch_id, alike.day)
            groups.setdefault(group, Counter())[alike.state] += alike.rows
    names = ("rule", "source", "generation", "batch_id", "day")
    ordered = sorted(
        groups.items(),
        key=lambda item: (item[0][2] or 0, item[0][3], item[0][1], item[0][0], item[0][4] or date.min),
    )
    return [{**dict(zip(names, group, strict=True)), **by_state(states)} for group, states in ordered]


def totals(found: Iterable[Alike]) -> dict[str, int]:
    """How many rows are in every state, in their order; each row once."""
    states: Counter[str] = Counter()
    for alike in found:
        states[alike.state] += alike.rows
    return by_state(states)


def by_state(found: Counter[str]) -> dict[str, int]:
    """A number for every state, in their order."""
    return {state: found[state] for state in STATES}


def folder_of(pipeline: Pipeline, decision_id: str) -> str:
    """Where what belongs to a decision lies, relative to the storage root."""
    return replayed_rows_of(pipeline.name, decision_id)


def write_keys(storage: Storage, folder: str, rows: Sequence[SetAside]) -> str:
    """The file of the keys that a decision covers; its path."""
    import pyarrow as pa

    keys = pa.table({"key": pa.array(sorted({row.key for row in rows}), pa.string())})
    return _write(storage, f"{folder}/keys.parquet", keys)


def write_rows(storage: Storage, path: str, rows: Sequence[SetAside]) -> str:
    """Rows as a parquet file for Spark: key, if malformed, payload, raw, parsed, and where from."""
    import pyarrow as pa

    text = ("key", "payload", "parsed", "file", "topic")
    columns = {name: pa.array([getattr(row, name) for row in rows], pa.string()) for name in text}
    columns["raw"] = pa.array([row.raw for row in rows], pa.binary())
    columns["malformed"] = pa.array([MALFORMED in row.reasons for row in rows], pa.bool_())
    columns["partition"] = pa.array([row.partition for row in rows], pa.int32())
    columns["offset"] = pa.array([row.offset for row in rows], pa.int64())
    return _write(storage, path, pa.table(columns))


def _write(storage: Storage, path: str, table: Any) -> str:
    import pyarrow.parquet as pq

    content = io.BytesIO()
    pq.write_table(table, content)
    storage.write_atomic(path, content.getvalue())
    return path


def decided_rows(
    workspace: Workspace, pipeline: Pipeline, since: datetime | None = None
) -> dict[str, tuple[RowState, str]]:
    """By row key what was decided, and the id of the decision.

    Args:
        since: leaves out what was decided before, which covers no row that was set aside later.
    """
    storage = workspace.storage
    all_decisions = workspace.metastore.decisions(pipeline.name)
    decisions = [
        each for each in all_decisions if since is None or each.decided_at is None or each.decided_at >= since
    ]
    found: dict[str, tuple[RowState, str]] = {}
    for decision_id, path in forgotten_replays(
        workspace.project, pipeline, {d.decision_id for d in all_decisions}
    ).items():
        found |= dict.fromkeys(_keys(storage, path), ("replayed", decision_id))
    of_intervals = [each.decision_id for each in decisions if each.kind == "interval"]
    changes = workspace.metastore.states_of_changes(of_intervals) if of_intervals else {}
    executed = workspace.metastore.executed_replays(pipeline.name)
    for decision in decisions:
        state: RowState = "dropped"
        if decision.kind == "interval":
            change = changes.get(decision.decision_id, "given-up")
            if change == "given-up":
                continue
            state = "replayed" if change == "committed" else "replaying"
        elif decision.kind == "replay":
            state = "replayed" if decision.decision_id in executed else "replaying"
        found |= dict.fromkeys(_keys(storage, decision.keys_path), (state, decision.decision_id))
    return found


def forgotten_replays(project: Project, pipeline: Pipeline, known: Collection[str]) -> dict[str, str]:
    """Find interval replays with quarantined rows that a restored older metastore does not know.

    The keys of these rows were written before the replay, and the table's own log says whether it was made.

    Args:
        known: the decisions that the metastore has.

    Returns:
        by id, which is that of the change, the path of the keys.
    """
    if pipeline.sink.format != "delta":
        return {}
    storage, table = Storage.of(project), output_uri(project, pipeline)
    paths = [info.relative for info in storage.list_files(f"{folder_of(pipeline, '*')}/keys.parquet")]
    unknown = {each: path for path in paths if (each := path.split("/")[-2]) not in known}
    if not unknown or not DeltaTableFiles(table).exists():
        return {}
    made = DeltaHistory(storage, table).replays_in(unknown)
    return {each: unknown[each] for each in sorted(made)}


def _keys(storage: Storage, path: str) -> list[str]:
    keys: list[str] = read_parquet(storage, path).column("key").to_pylist()
    return keys


def row_of(key: str, values: Mapping[str, Any], covered: Mapping[str, tuple[RowState, str]]) -> SetAside:
    """Return a row of the table, with what `decided_rows` says of its key."""
    kept: dict[str, Any] = {name: values.get(name) for name in COLUMNS}
    kept["reasons"] = tuple(kept["reasons"] or ())
    if key in covered:
        state, decision_id = covered[key]
        return SetAside(key=key, state=state, decision_id=decision_id, **kept)
    return SetAside(key=key, state=_undecided(kept["reasons"]), decision_id=None, **kept)


def _undecided(reasons: Sequence[str]) -> RowState:
    return "fed" if LATE in reasons else "open"


def _is_file(found: str | None, name: str) -> bool:
    return found is not None and f"/{unquote(found)}".endswith(f"/{name.lstrip('/')}")
