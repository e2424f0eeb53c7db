"""Rows of a quarantine are replayed or dropped by decisions, and replayed rows have a count of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Until now every row that was set aside was open, and none had been replayed."""
    for table in ("runs", "batches"):
        op.add_column(table, sa.Column("replayed", sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "quarantine_decisions",
        sa.Column("decision_id", sa.Text, primary_key=True),
        sa.Column("pipeline", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("keys_path", sa.Text, nullable=False),
        sa.Column("batch_id", sa.BigInteger, nullable=False),
        sa.Column("planned_ms", sa.BigInteger, nullable=False),
        sa.Column("feeds", sa.Text, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("decided_at", sa.BigInteger, nullable=False),
    )
    op.create_index(
        "ix_quarantine_decisions_pipeline", "quarantine_decisions", ["pipeline", "generation", "batch_id"]
    )
