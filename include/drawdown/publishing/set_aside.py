"""The rows of a quarantine as people see them: what each is, and whether it is open, replayed or dropped.

Read from the Delta table by delta-rs, without Spark, into this process's memory. Nothing in the table is
ever changed: what became of a row is kept as decisions in the metastore, each with a file of the row keys
that it covers. A key is made of all that tells a row from another; rows that are alike in all of it share
one, and every choice takes them together.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal
from urllib.parse import unquote

from drawdown.errors import RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.records import QuarantineDecision
from drawdown.publishing.delta_table import DeltaTableFiles
from drawdown.publishing.parquet_file import read_parquet
from drawdown.publishing.targets import quarantine_uri
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage

RowState = Literal["open", "fed", "replaying", "replayed", "dropped"]
STATES: Mapping[RowState, str] = {
    "open": "waits for a decision",
    "fed": "a late row: the transform was given it when it came, this is a copy",
    "replaying": "goes into a batch or an interval that is not committed yet: the next run completes it",
    "replayed": "went into a batch later on, or the replay of its interval brought it from the source",
    "dropped": "somebody decided that it is not wanted",
}
LATE, DRIFT, MALFORMED = "late", "drift", "malformed"

_KEPT = (
    "source", "reasons", "payload", "parsed", "event_time", "file", "topic", "partition", "offset",
    "generation", "batch_id", "run_id", "set_aside_at", "raw",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SetAside:
    """One row; `decision_id` is the decision that covers it. Columns that an older table lacks are None.

    Attributes:
        raw: the record's bytes where they are no UTF-8; `payload` shows them with replacement characters.
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

    @property
    def values(self) -> dict[str, Any]:
        """For a JSON document: `raw` in Base64."""
        raw = None if self.raw is None else base64.b64encode(self.raw).decode()
        return {**asdict(self), "raw": raw}


@dataclass(frozen=True)
class Choice:
    """Which rows are meant: those that fit every kind of filter that is given, by any of its values.

    Attributes:
        files: whole names or last parts of them.
    """

    rules: tuple[str, ...] = ()
    batches: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    states: tuple[str, ...] = ()

    def fits(self, row: SetAside) -> bool:
        return (
            (not self.rules or bool(set(self.rules) & set(row.reasons)))
            and (not self.batches or row.batch_id in self.batches)
            and (not self.files or any(_is_file(row.file, name) for name in self.files))
            and (not self.states or row.state in self.states)
        )

    @property
    def said(self) -> dict[str, Any]:
        """As a run record keeps it."""
        named = {"rules": self.rules, "batches": self.batches, "files": self.files}
        return {name: list(values) for name, values in named.items() if values}


def set_aside(metastore: Metastore, project: Project, pipeline: Pipeline) -> list[SetAside]:
    """Every visible row of a pipeline's quarantine, oldest batch first.

    Raises:
        RefusedError: ``quarantine.none``: there is no table yet.
        SourceError: it cannot be read.
    """
    table = DeltaTableFiles(quarantine_uri(project, pipeline))
    if not table.exists():
        raise RefusedError(
            "quarantine.none",
            f"{pipeline.name} has no quarantine: it has never run",
            where=table.uri,
            do=f"`drawdown run {pipeline.name}`",
        )
    covered = _covered(metastore, Storage(project.storage_root), pipeline)
    rows = [_row(values, covered) for values in table.rows(_KEPT)]
    return sorted(rows, key=lambda row: (row.generation or 0, row.batch_id, row.source, row.key))


def counts(rows: Iterable[SetAside]) -> list[dict[str, Any]]:
    """Rows per rule, batch and day (UTC), by state; a row that broke two rules counts for both."""
    groups: dict[tuple[Any, ...], Counter[str]] = {}
    for row in rows:
        day = None if row.set_aside_at is None else row.set_aside_at.date()
        for reason in row.reasons or ("",):
            group = (reason, row.source, row.generation, row.batch_id, day)
            groups.setdefault(group, Counter())[row.state] += 1
    names = ("rule", "source", "generation", "batch_id", "day")
    ordered = sorted(groups.items(), key=lambda item: (item[0][2] or 0, item[0][3], item[0][1], item[0][0]))
    return [{**dict(zip(names, group, strict=True)), **by_state(found)} for group, found in ordered]


def by_state(found: Counter[str]) -> dict[str, int]:
    """A number for every state, in their order."""
    return {state: found[state] for state in STATES}


def folder_of(pipeline: Pipeline, decision_id: str) -> str:
    """Where what belongs to a decision lies, relative to the storage root."""
    return f"_drawdown/{pipeline.name}/quarantine/{decision_id}"


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


def _covered(
    metastore: Metastore, storage: Storage, pipeline: Pipeline
) -> dict[str, tuple[RowState, QuarantineDecision]]:
    """By row key what was decided."""
    found: dict[str, tuple[RowState, QuarantineDecision]] = {}
    decisions = metastore.decisions(pipeline.name)
    of_intervals = [each.decision_id for each in decisions if each.kind == "interval"]
    changes = metastore.states_of_changes(of_intervals) if of_intervals else {}
    for decision in decisions:
        state: RowState = "dropped"
        if decision.kind == "interval":
            change = changes.get(decision.decision_id, "given-up")
            if change == "given-up":
                continue
            state = "replayed" if change == "committed" else "replaying"
        elif decision.kind == "replay":
            batch = metastore.batch(pipeline.name, decision.generation, decision.batch_id)
            state = "replaying" if batch is None or batch.status == "staged" else "replayed"
        keys = read_parquet(storage, decision.keys_path).column("key").to_pylist()
        found |= dict.fromkeys(keys, (state, decision))
    return found


def _row(values: Mapping[str, Any], covered: Mapping[str, tuple[RowState, QuarantineDecision]]) -> SetAside:
    kept: dict[str, Any] = {name: values.get(name) for name in _KEPT}
    kept["reasons"] = tuple(kept["reasons"] or ())
    told = ("reasons", "source", "payload", "file", "topic", "partition", "offset", "generation", "batch_id")
    # Records of other bytes may look the same as text.
    bytes_of = [] if kept["raw"] is None else [kept["raw"].hex()]
    identity = json.dumps([*(kept[name] for name in (*told, "run_id")), *bytes_of])
    key = hashlib.sha256(identity.encode()).hexdigest()
    if key in covered:
        state, decision = covered[key]
        return SetAside(key=key, state=state, decision_id=decision.decision_id, **kept)
    return SetAside(key=key, state="fed" if LATE in kept["reasons"] else "open", decision_id=None, **kept)


def _is_file(found: str | None, name: str) -> bool:
    return found is not None and f"/{unquote(found)}".endswith(f"/{name.lstrip('/')}")
