"""The first schema: leases, checkpoints, runs, batches, staged files, maxima, verdicts."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

COUNTS = (
    "read",
    "malformed",
    "future",
    "quarantined",
    "fed",
    "late",
    "late_groups",
    "warned",
    "staged",
    "published",
)


def _counts() -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger, nullable=False) for name in COUNTS]


def upgrade() -> None:
    """Creates every table. Times are microseconds since 1970 UTC; JSON is text."""
    _leases_and_checkpoints()
    _runs()
    _batches()
    _maxima_and_verdicts()


def _leases_and_checkpoints() -> None:
    op.create_table(
        "leases",
        sa.Column("pipeline", sa.Text, primary_key=True),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("acquired_at", sa.BigInteger, nullable=False),
        sa.Column("renewed_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("released", sa.Boolean, nullable=False),
    )
    op.create_table(
        "checkpoints",
        sa.Column("pipeline", sa.Text, primary_key=True),
        sa.Column("generation", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("query_id", sa.Text),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", sa.Text, primary_key=True),
        sa.Column("pipeline", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("generation", sa.Integer),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("batches", sa.Integer, nullable=False),
        *_counts(),
        sa.Column("watermark", sa.BigInteger),
        sa.Column("verdict", sa.Text),
        sa.Column("stop_reason", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("progress", sa.Text, nullable=False),
    )
    op.create_index("ix_runs_started", "runs", ["started_at", "run_id"])
    op.create_index("ix_runs_pipeline_started", "runs", ["pipeline", "started_at", "run_id"])
    op.create_index("ix_runs_pipeline_state", "runs", ["pipeline", "state"])


def _batches() -> None:
    op.create_table(
        "batches",
        sa.Column("pipeline", sa.Text, primary_key=True),
        sa.Column("generation", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("batch_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("offsets_from", sa.Text, nullable=False),
        sa.Column("offsets_to", sa.Text, nullable=False),
        sa.Column("watermark", sa.BigInteger),
        *_counts(),
        sa.Column("by_source", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text),
    )
    op.create_index("ix_batches_status", "batches", ["pipeline", "generation", "status", "batch_id"])
    op.create_table(
        "staged_files",
        sa.Column("pipeline", sa.Text, primary_key=True),
        sa.Column("generation", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("batch_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("table_name", sa.Text, primary_key=True),
        sa.Column("path", sa.Text, primary_key=True),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
    )


def _maxima_and_verdicts() -> None:
    op.create_table(
        "maxima",
        sa.Column("pipeline", sa.Text, primary_key=True),
        sa.Column("generation", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("source", sa.Text, primary_key=True),
        sa.Column("event_time", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "verdicts",
        sa.Column("verdict_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("pipeline", sa.Text, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("first_batch", sa.BigInteger, nullable=False),
        sa.Column("last_batch", sa.BigInteger, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("results", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_verdicts_pipeline", "verdicts", ["pipeline", "verdict_id"])
