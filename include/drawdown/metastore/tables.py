"""The tables of the metastore. A change here needs a revision under migrations/ (a test compares them)."""

from __future__ import annotations

from dataclasses import fields

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, MetaData, Table, Text

from drawdown.metastore.columns import FreeText, JsonText, UtcTime
from drawdown.metastore.records import Counts

VERSION_TABLE = "drawdown_version"

metadata = MetaData()


def _counts() -> list[Column[int]]:
    return [Column(f.name, BigInteger, nullable=False) for f in fields(Counts)]


leases = Table(
    "leases",
    metadata,
    Column("pipeline", Text, primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("holder", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("acquired_at", UtcTime, nullable=False),
    Column("renewed_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("released", Boolean, nullable=False),
    # The holder as lease_holders.py describes it, with the only epoch for which it is valid.
    Column("process", JsonText),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("pipeline", Text, primary_key=True),
    Column("generation", Integer, primary_key=True, autoincrement=False),
    Column("path", Text, nullable=False),
    Column("query_id", Text),
    Column("fingerprint", JsonText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("state", Text, nullable=False),
    Column("rebuild", JsonText, nullable=False),
    Column("judging", JsonText, nullable=False, server_default="{}"),
    Column("begun_batch", Integer),
)

claims = Table(
    "claims",
    metadata,
    Column("pipeline", Text, primary_key=True),
    # By line, the time since when the pipeline runs with it.
    Column("lines", JsonText, nullable=False),
)

applications = Table(
    "applications",
    metadata,
    Column("application_id", Text, primary_key=True),
    Column("cluster", Text, nullable=False),
    Column("cores", Integer, nullable=False),
    Column("memory", BigInteger, nullable=False),
    Column("price", JsonText),
    Column("started_at", UtcTime, nullable=False),
    Column("seen_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    Column("start_us", BigInteger),
    Column("idle_us", BigInteger),
    Column("cpu_us", BigInteger),
    Column("peak_bytes", BigInteger),
    Index("ix_applications_started", "started_at"),
)

runs = Table(
    "runs",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("pipeline", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("generation", Integer),
    Column("state", Text, nullable=False),
    Column("holder", Text, nullable=False),
    Column("origin", JsonText, nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    Column("batches", Integer, nullable=False),
    *_counts(),
    Column("watermark", UtcTime),
    Column("verdict", Text),
    Column("stop_reason", FreeText),
    Column("error", JsonText),
    Column("progress", JsonText, nullable=False),
    Column("notices", JsonText, nullable=False),
    Column("application", Text),
    Column("usage", JsonText),
    Column("phases", JsonText),
    # The part of the origin that identifies the DAG run or command (runs.request_of).
    Column("request", Text),
    # For lists of runs, of one pipeline or all, and for runs that a dead holder left open.
    Index("ix_runs_started", "started_at", "run_id"),
    Index("ix_runs_pipeline_started", "pipeline", "started_at", "run_id"),
    Index("ix_runs_pipeline_state", "pipeline", "state"),
    Index("ix_runs_application", "application"),
    Index("ix_runs_request", "request"),
)

batches = Table(
    "batches",
    metadata,
    Column("pipeline", Text, primary_key=True),
    Column("generation", Integer, primary_key=True, autoincrement=False),
    Column("batch_id", BigInteger, primary_key=True, autoincrement=False),
    Column("run_id", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("offsets_from", JsonText, nullable=False),
    Column("offsets_to", JsonText, nullable=False),
    Column("watermark", UtcTime),
    *_counts(),
    Column("by_source", JsonText, nullable=False),
    Column("status", Text, nullable=False),
    Column("verdict", Text),
    Column("treatment", JsonText, nullable=False, server_default="{}"),
    # A drain reads the few unpublished batches; without this it would read the pipeline's whole history.
    Index("ix_batches_status", "pipeline", "generation", "status", "batch_id"),
)

staged_files = Table(
    "staged_files",
    metadata,
    Column("pipeline", Text, primary_key=True),
    Column("generation", Integer, primary_key=True, autoincrement=False),
    Column("batch_id", BigInteger, primary_key=True, autoincrement=False),
    Column("table_name", Text, primary_key=True),
    Column("path", Text, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("action", JsonText, nullable=False),
)

read_files = Table(
    "read_files",
    metadata,
    Column("pipeline", Text, primary_key=True),
    Column("generation", Integer, primary_key=True, autoincrement=False),
    Column("source", Text, primary_key=True),
    Column("path", Text, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("mtime_ms", BigInteger, nullable=False),
)

maxima = Table(
    "maxima",
    metadata,
    Column("pipeline", Text, primary_key=True),
    Column("generation", Integer, primary_key=True, autoincrement=False),
    Column("source", Text, primary_key=True),
    Column("event_time", UtcTime, nullable=False),
)

quarantine_decisions = Table(
    "quarantine_decisions",
    metadata,
    Column("decision_id", Text, primary_key=True),
    Column("pipeline", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("keys_path", Text, nullable=False),
    Column("batch_id", BigInteger, nullable=False),
    Column("planned_ms", BigInteger, nullable=False),
    Column("feeds", JsonText, nullable=False),
    Column("origin", JsonText, nullable=False),
    Column("decided_at", UtcTime, nullable=False),
    Index("ix_quarantine_decisions_pipeline", "pipeline", "generation", "batch_id"),
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("verdict_id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("pipeline", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("first_batch", BigInteger, nullable=False),
    Column("last_batch", BigInteger, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("results", JsonText, nullable=False),
    Column("text", FreeText, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("measures", JsonText, nullable=False),
    Index("ix_verdicts_pipeline", "pipeline", "verdict_id"),
)

changes = Table(
    "changes",
    metadata,
    Column("change_id", Text, primary_key=True),
    Column("pipeline", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("scope", JsonText, nullable=False),
    Column("based_on", BigInteger),
    Column("place", Text),
    Column("run_id", Text, nullable=False),
    Column("lease", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("begun_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    # A new holder of a lease reads what dead holders left open.
    Index("ix_changes_pipeline_state", "pipeline", "state"),
)

older_clusters = Table(
    "clusters",
    metadata,
    Column("cluster_key", Text, primary_key=True),
    Column("profile", Text, nullable=False),
    Column("down", Text, nullable=False),
    Column("workers", Integer, nullable=False),
    Column("cores", Integer, nullable=False),
    Column("memory", Text, nullable=False),
    Column("asked_by", JsonText, nullable=False),
    Column("until", UtcTime, nullable=False),
    Column("answer", JsonText),
)
"""Of programs before schema 0016, which may go on beside this one."""

clusters = Table(
    "cluster_instances",
    metadata,
    Column("instance", Text, primary_key=True),
    Column("cluster_key", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("profile", Text, nullable=False),
    Column("down", Text, nullable=False),
    Column("workers", Integer, nullable=False),
    Column("cores", Integer, nullable=False),
    Column("memory", Text, nullable=False),
    Column("asked_by", JsonText, nullable=False),
    Column("begun_at", UtcTime, nullable=False),
    Column("up_by", UtcTime, nullable=False),
    Column("deadline", UtcTime, nullable=False),
    Column("state", Text, nullable=False),
    Column("answer", JsonText),
    Column("tries", Integer, nullable=False),
    Column("next_try_at", UtcTime),
    Column("last_error", FreeText),
    Index("ix_cluster_instances_cluster_key", "cluster_key"),
)

figures = Table(
    "figures",
    metadata,
    Column("pipeline", Text, primary_key=True),
    Column("recorded_at", UtcTime, nullable=False),
    Column("content", JsonText, nullable=False),
)

backlogs = Table(
    "backlogs",
    metadata,
    Column("pipeline", Text, primary_key=True),
    Column("seen_at", UtcTime, primary_key=True, autoincrement=False),
    Column("by_source", JsonText, nullable=False),
)

announcements = Table(
    "announcements",
    metadata,
    Column("pipeline", Text, primary_key=True),
    Column("alert", Text, primary_key=True),
    Column("target", Text, primary_key=True),
    Column("since", UtcTime, nullable=False),
    Column("sentence", Text, nullable=False),
    Column("told_at", UtcTime),
    Column("ended_at", UtcTime),
)
