"""What Spark applications requested and used, and each run's share of it."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Earlier runs keep NULL in `application` and `usage`: their application is unknown."""
    op.create_table(
        "applications",
        sa.Column("application_id", sa.Text, primary_key=True),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("cores", sa.Integer, nullable=False),
        sa.Column("memory", sa.BigInteger, nullable=False),
        sa.Column("price", sa.Text),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("seen_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("start_us", sa.BigInteger),
        sa.Column("idle_us", sa.BigInteger),
        sa.Column("cpu_us", sa.BigInteger),
        sa.Column("peak_bytes", sa.BigInteger),
    )
    op.create_index("ix_applications_started", "applications", ["started_at"])
    op.add_column("runs", sa.Column("application", sa.Text))
    op.add_column("runs", sa.Column("usage", sa.Text))
    op.create_index("ix_runs_application", "runs", ["application"])
