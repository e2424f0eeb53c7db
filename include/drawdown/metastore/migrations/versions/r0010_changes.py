"""Every change of a sink's table is noted before its first file is written."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """What changed before is not known to the register; the sinks' own logs have it."""
    op.create_table(
        "changes",
        sa.Column("change_id", sa.Text, primary_key=True),
        sa.Column("pipeline", sa.Text, nullable=False),
        sa.Column("table_name", sa.Text, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("based_on", sa.BigInteger),
        sa.Column("place", sa.Text),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("lease", sa.Text, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("begun_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
    )
    op.create_index("ix_changes_pipeline_state", "changes", ["pipeline", "state"])
